"""Teacher-forced scores equal the benchmark's scores within float64 precision."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch

from bittoken.encodings.bittoken import BitToken
from bittoken.training.losses import Predictions, Targets
from bittoken.training.teacher_forcing import teacher_forced_scores
from bittoken.vocabulary import Vocabulary
from numbench.scoring import metrics

Answer = tuple[list[str], list[str]]
"""Predicted and expected tokens of an answer; a number is written as its text."""


class Unsigned(BitToken):
    signed = False

    def encode(self, values: np.ndarray) -> np.ndarray:
        return super().encode(np.abs(values))


def make_vocabulary(encoding: str) -> Vocabulary:
    vocabulary = Vocabulary(
        "bittoken" if encoding == "unsigned" else encoding, ("5", "\u00b2", "\u0663")
    )
    if encoding == "unsigned":
        vocabulary.encoding = Unsigned()
    return vocabulary


def score_answers(
    answers: list[Answer], tasks: list[str], encoding: str = "bittoken"
) -> list[list[float]]:
    """Return score and exact match of each answer. Text tokens are written @0, @1 …"""
    vocabulary = make_vocabulary(encoding)
    ids = {**vocabulary.ids, **{f"@{i}": len(vocabulary.base_tokens) + i for i in range(3)}}

    def token(text: str) -> int:
        return ids.get(text, ids["<|num|>"])

    def value(text: str) -> float:
        return float(text) if text not in ids else 0.0

    predicted = [token(text) for predicted_text, _ in answers for text in predicted_text]
    expected_tokens = [token(text) for _, right in answers for text in right]
    sample = [row for row, (_, right) in enumerate(answers) for _ in right]
    logits = torch.nn.functional.one_hot(torch.tensor(predicted), len(vocabulary)).float()
    predicted_values = np.array(
        [value(text) for predicted_text, _ in answers for text in predicted_text]
    )
    plain = BitToken(reciprocal=False)
    outputs = torch.from_numpy(plain.vector(plain.encode(predicted_values)))
    truths = np.array([value(text) for _, right in answers for text in right])
    codes = torch.from_numpy(truths.view(np.int64)[:, None])
    targets = Targets(
        torch.arange(len(expected_tokens)),
        torch.tensor(expected_tokens),
        codes,
        torch.tensor(sample),
    )
    predictions = Predictions(logits, None if vocabulary.encoding is None else outputs)
    score, exact = teacher_forced_scores(predictions, targets, tasks, vocabulary)
    return np.stack([score, exact], 1).tolist()


EOS = "<|eos|>"
NUM = "<|num|>"


def number(predicted_text: str, right: str) -> Answer:
    return [predicted_text, EOS], [right, EOS]


@pytest.mark.parametrize(
    ("predicted_text", "right", "exact"),
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
def test_numbers_are_compared_to_15_digits(predicted_text: str, right: str, exact: int) -> None:
    (row,) = score_answers([number(predicted_text, right)], ["minmax"])
    assert row == [exact, exact]


def test_log_smape_agrees_with_the_benchmark() -> None:
    draw = np.random.default_rng(4)
    pairs = []
    for _ in range(3000):
        truth = Decimal(int(draw.integers(10**14, 10**15))).scaleb(int(draw.integers(-28, 1)))
        error = Decimal(10) ** int(draw.integers(-17, 3)) * Decimal(float(draw.normal()))
        sign = -1 if draw.random() < 0.3 else 1
        pairs.append((metrics.round_significant(sign * truth * (1 + error)), sign * truth))
    scores = score_answers([number(str(a), str(b)) for a, b in pairs], ["addition"] * len(pairs))
    for (value, truth), (score, exact) in zip(pairs, scores, strict=True):
        expected = metrics.log_smape(value, truth)
        gap = abs(value / truth - 1)
        # Half a unit of the last bit of float64 against the gap: it matters in the last digits.
        assert score == pytest.approx(expected, abs=1e-6 if gap > 1e-10 else 0.01)
        assert exact == (value == truth)
        assert exact <= score


def test_answers_that_are_not_finite_numbers_score_0() -> None:
    answers: list[Answer] = [
        (["A", EOS], ["5.0", EOS]),
        (["nan", EOS], ["5.0", EOS]),
        (["-inf", EOS], ["5.0", EOS]),
        (["0.0", EOS], ["5.0", EOS]),
        (["-5.0", EOS], ["5.0", EOS]),
    ]
    assert score_answers(answers, ["addition"] * 5) == [[0, 0]] * 5


def test_correct_number_without_eos_is_not_an_exact_match() -> None:
    ((score, exact),) = score_answers([(["5.0", "5.0"], ["5.0", EOS])], ["addition"])
    assert (score, exact) == (1, 0)


def test_largest_numbers_do_not_overflow() -> None:
    largest = "1.7976931348623157e308"
    answers = [number(largest, "9e14"), number("-" + largest, "-9e14"), number(largest, "0.0")]
    assert score_answers(answers, ["addition"] * 3) == [[0, 0]] * 3


def test_sign_token_of_an_unsigned_number_counts() -> None:
    answers: list[Answer] = [
        (["-", "5.0", EOS], ["-", "5.0", EOS]),
        (["5.0", "5.0", EOS], ["-", "5.0", EOS]),
        (["-", "5.5", EOS], ["-", "5.0", EOS]),
        (["5.5", EOS], ["5.0", EOS]),
    ]
    scores = score_answers(answers, ["addition"] * 4, "unsigned")
    # |5.5 − 5| / 10.5 = 0.047619, lg −1.322219, over −15.
    close = [pytest.approx(0.0881480, abs=1e-6), 0]
    assert scores == [[1, 1], [0, 0], close, close]


@pytest.mark.parametrize("encoding", ["digit", "subword"])
def test_spelled_numbers_are_parsed_from_their_tokens(encoding: str) -> None:
    right = ["-", "1", ".", "5", EOS]
    answers: list[Answer] = [
        (right, right),
        (["-", "1", ".", "6", EOS], right),
        (["-", "1", "2", "5", EOS], right),
        (["5", "1", ".", "5", EOS], right),
        (["-", "1", "-", "5", EOS], right),
        (["-", ".", ".", "5", EOS], right),
        (["-", "-", ".", "5", EOS], right),
        (["-", "1", ".", EOS, EOS], right),
        (["-", ".", "1", ".", EOS], right),
        (["-", "1", ".", "@0", EOS], right),
        (["-", "1", ".", "@1", EOS], right),
        (["-", "1", ".", "@2", EOS], right),
    ]
    scores = score_answers(answers, ["division"] * len(answers), encoding)
    # 0.1 / 3.1: lg −1.491362; −125 and 51.5 are far away.
    assert scores[0] == [1, 1]
    assert scores[1] == [pytest.approx(0.0994241, abs=1e-6), 0]
    assert scores[2][0] == pytest.approx(-np.log10(123.5 / 126.5) / 15)
    assert scores[3:9] == [[0, 0]] * 6
    # The same character from the text vocabulary spells the same number, but is another token.
    assert scores[9] == [1, 0]
    assert scores[10:] == [[0, 0]] * 2


def test_comparison_tasks_score_0_or_1() -> None:
    listed = ["[", "1", ", ", "2", "]", EOS]
    answers: list[Answer] = [
        (["C", EOS], ["C", EOS]),
        (["D", EOS], ["C", EOS]),
        (listed, listed),
        (["[", "2", ", ", "2", "]", EOS], listed),
        (["[", "1", ", ", "2", ", ", EOS], listed),
        number("1.0000001", "1"),
    ]
    tasks = ["interval", "interval", "sorting", "sorting", "sorting", "minmax"]
    assert score_answers(answers, tasks) == [[1, 1], [0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]


def test_text_scores_the_share_of_correct_tokens() -> None:
    right = ["@0", "@1", "3.5", "@2"]
    answers: list[Answer] = [
        (right, right),
        (["@0", "@1", "3.6", "@1"], right),
    ]
    assert score_answers(answers, ["text", "text"]) == [[1, 1], [0.5, 0]]
