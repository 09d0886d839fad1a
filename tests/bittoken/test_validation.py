"""Losses; and teacher-forced scores that equal the benchmark's within float64 precision."""

import math
from decimal import Decimal

import numpy as np
import pytest
import torch

from bittoken.encodings.bittoken import BitToken
from bittoken.evaluation import Predictions, predict, teacher_forced_scores, token_losses
from bittoken.tokens import Vocabulary
from numbench.scoring import metrics
from tests.bittoken import small
from tests.support.case_tables import each_row

EOS, NUM = "<|eos|>", "<|num|>"
Answer = tuple[list[str], list[str]]
"""Predicted and expected tokens of an answer; a number is written as its text."""


@pytest.mark.parametrize("encoding", ["bittoken", "digit"])
def test_every_target_is_predicted_from_the_tokens_before_it(encoding: str) -> None:
    network, rows = small.network(encoding), small.samples([5, 3], encoding)
    rows.is_target[:] = [[0, 0, 0, 1, 1], [0, 1, 1, 0, 0]]
    found = predict(network, rows, torch.device("cpu"))
    targets = [0, 0, 1, 1], [3, 4, 1, 2]
    assert found.row.tolist() == targets[0]
    assert found.tokens.tolist() == rows.tokens[targets].tolist()
    assert found.codes.tolist() == rows.codes[targets].tolist()
    first, second = small.hidden(network, rows)
    states = torch.cat([first[2:-1], second[:-1]])
    torch.testing.assert_close(found.logits, network.logits(states))
    if encoding == "digit":
        assert found.outputs is None
    else:
        torch.testing.assert_close(found.outputs, network.number_outputs(states))


def test_loss_is_cross_entropy_plus_ten_times_the_number_loss_of_numbers() -> None:
    vocabulary = Vocabulary("bittoken")
    size, number_id = len(vocabulary), vocabulary.ids[NUM]
    codes = torch.from_numpy(np.array([[1.5], [0.0]]).view(np.int64))
    logits = torch.zeros(2, size)
    logits[0, number_id] = 2.0
    # 1.5 is 0 01111111111 1000…: eleven bits of 64 set. All outputs are 3, in favor of 1.
    tokens, rows = torch.tensor([number_id, 2]), torch.zeros(2, dtype=torch.int64)
    predictions = Predictions(tokens, codes, rows, logits, torch.full((2, 64), 3.0))
    losses = token_losses(small.network(), predictions, vocabulary)
    cross = [math.log(math.exp(2) + size - 1) - 2, math.log(size)]
    correct, incorrect = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    number = (11 * correct + 53 * incorrect) / 64
    assert losses.tolist() == pytest.approx([cross[0] + 10 * number, cross[1]], rel=1e-5)
    spelled = predictions._replace(outputs=None)
    losses = token_losses(small.network("digit"), spelled, Vocabulary("digit"))
    assert losses.tolist() == pytest.approx(cross, rel=1e-5)


def score_answers(
    answers: list[Answer], task: str, vocabulary: Vocabulary | None = None
) -> list[list[float]]:
    """Return score and exact match of each answer. A text that is no token is a number."""
    vocabulary = vocabulary or Vocabulary("bittoken")
    ids = {token: number for number, token in reversed(list(enumerate(vocabulary.tokens)))}

    def tokens(texts: list[str]) -> torch.Tensor:
        return torch.tensor([ids.get(text, ids[NUM]) for text in texts])

    def values(texts: list[str]) -> np.ndarray:
        return np.array([0.0 if text in ids else float(text) for text in texts])

    predicted, expected = ([t for answer in answers for t in answer[i]] for i in (0, 1))
    encoding = BitToken(reciprocal=False)
    predictions = Predictions(
        tokens(expected),
        torch.from_numpy(encoding.encode(values(expected))),
        torch.tensor([row for row, answer in enumerate(answers) for _ in answer[1]]),
        torch.nn.functional.one_hot(tokens(predicted), len(vocabulary)).float(),
        encoding.vector(torch.from_numpy(encoding.encode(values(predicted)))),
    )
    if vocabulary.encoding is None:
        predictions = predictions._replace(outputs=None)
    scores = teacher_forced_scores(predictions, task, len(answers), vocabulary)
    return np.stack(scores, 1).tolist()


def number(predicted: str, right: str) -> Answer:
    return [predicted, EOS], [right, EOS]


@each_row(__file__, "compared_numbers")
def test_numbers_are_compared_to_15_digits(predicted: str, right: str, exact: int) -> None:
    assert score_answers([number(predicted, right)], "minmax") == [[exact, exact]]


def test_log_smape_agrees_with_the_benchmark() -> None:
    draw = np.random.default_rng(4)
    pairs = [(0.0, 1.0), (-1.0, 1.0), (1e300, 1e-300)]
    for _ in range(200):
        truth = Decimal(int(draw.integers(10**14, 10**15))).scaleb(int(draw.integers(-28, 1)))
        error = Decimal(float(draw.normal())) * truth * Decimal(10) ** -int(draw.integers(0, 15))
        pairs.append((float(truth + error), float(truth)))
    answers = [number(repr(predicted), repr(truth)) for predicted, truth in pairs]
    scores = score_answers(answers, "addition")
    for (predicted, truth), (score, exact) in zip(pairs, scores, strict=True):
        answer, rounded = (metrics.round_significant(Decimal(x)) for x in (predicted, truth))
        assert score == pytest.approx(metrics.log_smape(answer, rounded), abs=2e-3)
        assert exact == (answer == rounded)
    infinite = [number("nan", "1"), number("inf", "1")]
    assert score_answers(infinite, "addition") == [[0, 0], [0, 0]]


def test_a_sign_token_of_an_unsigned_number_counts() -> None:
    answers: list[Answer] = [
        (["-", "5.0", EOS], ["-", "5.0", EOS]),
        (["5.0", "5.0", EOS], ["-", "5.0", EOS]),
        (["-", "5.5", EOS], ["-", "5.0", EOS]),
        (["5.5", EOS], ["5.0", EOS]),
    ]
    # |5.5 − 5| / 10.5 = 0.047619, lg −1.322219, over −15.
    close = [pytest.approx(0.0881480, abs=1e-6), 0]
    scores = score_answers(answers, "addition", small.unsigned_vocabulary())
    assert scores == [[1, 1], [0, 0], close, close]


@pytest.mark.parametrize("encoding", ["digit", "subword"])
def test_spelled_numbers_are_read_from_their_tokens(encoding: str) -> None:
    right = ["-", "1", ".", "5", EOS]
    wrong = ["51.5", "-1-5", "-..5", "--.5", "-.1.", "-1.²", "-1.٣"]
    answers: list[Answer] = [(right, right), (["-", "1", ".", "6", EOS], right)]
    answers += [([*text[:4], EOS], right) for text in map(list, wrong)]
    answers += [(["-", "1", ".", " + ", EOS], right), (["-", "1", "2", "5", EOS], right)]
    scores = score_answers(answers, "division", Vocabulary(encoding, ("²", "٣")))
    # 0.1 / 3.1: lg −1.491362; −125 is far away.
    assert scores[:2] == [[1, 1], [pytest.approx(0.0994241, abs=1e-6), 0]]
    assert all(score < 0.01 and not exact for score, exact in scores[2:])
    assert scores[-1][0] == pytest.approx(-np.log10(123.5 / 126.5) / 15)


@each_row(__file__, "scores_of_tasks")
def test_comparison_tasks_score_0_or_1_and_text_the_share_of_correct_tokens(
    task: str, right: list[str], wrong: list[str], score: float
) -> None:
    words = Vocabulary("bittoken", ("x", "y", "z"))
    assert score_answers([(right, right), (wrong, right)], task, words) == [[1, 1], [score, 0]]
