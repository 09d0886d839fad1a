"""Teacher-forced scores equal the benchmark's scores within float64 precision."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch

from bittoken.encodings.bittoken import BitToken
from bittoken.evaluation import Predictions, teacher_forced_scores
from bittoken.tokens import Vocabulary
from numbench.scoring import metrics
from tests.bittoken.small import unsigned_vocabulary

EOS, NUM = "<|eos|>", "<|num|>"
Answer = tuple[list[str], list[str]]
"""Predicted and expected tokens of an answer; a number is written as its text."""


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


@pytest.mark.parametrize(
    ("predicted", "right", "exact"),
    [
        ("0.1", "0.1", 1),
        ("0.10000000000000002", "0.1", 1),
        ("123456.789012345049", "123456.789012345", 1),
        ("123456.7890123456", "123456.789012345", 0),
        ("123456.789012346", "123456.789012345", 0),
        ("99999999999999.99", "100000000000000", 1),
        ("99999999999999.94", "100000000000000", 0),
        ("-0.1", "0.1", 0),
        ("-0.0", "0.0", 1),
        ("nan", "1", 0),
        ("inf", "1", 0),
    ],
)
def test_numbers_are_compared_to_15_digits(predicted: str, right: str, exact: int) -> None:
    assert score_answers([number(predicted, right)], "minmax") == [[exact, exact]]


def test_log_smape_agrees_with_the_benchmark() -> None:
    draw = np.random.default_rng(4)
    pairs = []
    for _ in range(500):
        truth = Decimal(int(draw.integers(10**14, 10**15))).scaleb(int(draw.integers(-28, 1)))
        error = Decimal(float(draw.normal())) * truth * Decimal(10) ** -int(draw.integers(0, 15))
        pairs.append((float(truth + error), float(truth)))
    pairs += [(0.0, 1.0), (-1.0, 1.0), (1e300, 1e-300), (float("nan"), 1.0), (float("inf"), 1.0)]
    answers = [number(repr(predicted), repr(truth)) for predicted, truth in pairs]
    scores = np.array(score_answers(answers, "addition"))
    for (predicted, truth), (score, exact) in zip(pairs, scores, strict=True):
        rounded = metrics.round_significant(Decimal(truth))
        if np.isfinite(predicted):
            answer = metrics.round_significant(Decimal(predicted))
            assert score == pytest.approx(metrics.log_smape(answer, rounded), abs=2e-3)
            assert exact == (answer == rounded)
        else:
            assert (score, exact) == (0, 0)


def test_a_sign_token_of_an_unsigned_number_counts() -> None:
    answers: list[Answer] = [
        (["-", "5.0", EOS], ["-", "5.0", EOS]),
        (["5.0", "5.0", EOS], ["-", "5.0", EOS]),
        (["-", "5.5", EOS], ["-", "5.0", EOS]),
        (["5.5", EOS], ["5.0", EOS]),
    ]
    # |5.5 − 5| / 10.5 = 0.047619, lg −1.322219, over −15.
    close = [pytest.approx(0.0881480, abs=1e-6), 0]
    scores = score_answers(answers, "addition", unsigned_vocabulary())
    assert scores == [[1, 1], [0, 0], close, close]


@pytest.mark.parametrize("encoding", ["digit", "subword"])
def test_spelled_numbers_are_read_from_their_tokens(encoding: str) -> None:
    right = ["-", "1", ".", "5", EOS]
    wrong = ["51.5", "-1-5", "-..5", "--.5", "-.1.", "-1.²", "-1.٣", "-1. + "]
    answers: list[Answer] = [(right, right), (["-", "1", ".", "6", EOS], right)]
    answers += [([*text[:4], EOS], right) for text in map(list, wrong[:-1])]
    answers += [(["-", "1", ".", " + ", EOS], right), (["-", "1", "2", "5", EOS], right)]
    scores = score_answers(answers, "division", Vocabulary(encoding, ("²", "٣")))
    # 0.1 / 3.1: lg −1.491362; −125 is far away.
    assert scores[:2] == [[1, 1], [pytest.approx(0.0994241, abs=1e-6), 0]]
    assert all(score < 0.01 and not exact for score, exact in scores[2:])
    assert scores[-1][0] == pytest.approx(-np.log10(123.5 / 126.5) / 15)


def test_comparison_tasks_score_0_or_1_and_text_the_share_of_correct_tokens() -> None:
    listed = ["[", "1", ", ", "2", "]", EOS]
    wrong = [["[", "2", ", ", "2", "]", EOS], ["[", "1", ", ", "2", ", ", EOS]]
    assert score_answers([(listed, listed), *((w, listed) for w in wrong)], "sorting") == [
        [1, 1], [0, 0], [0, 0]
    ]  # fmt: skip
    assert score_answers([(["C", EOS], ["C", EOS]), (["D", EOS], ["C", EOS])], "interval") == [
        [1, 1], [0, 0]
    ]  # fmt: skip
    text = ["x", "y", "3.5", "z"]
    answers: list[Answer] = [(text, text), (["x", "y", "3.6", "y"], text)]
    assert score_answers(answers, "text", Vocabulary("bittoken", ("x", "y", "z"))) == [
        [1, 1], [0.5, 0]
    ]  # fmt: skip
