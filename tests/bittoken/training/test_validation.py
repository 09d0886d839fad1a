"""Scores of a validation: the benchmark's own, up to what float64 can tell."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch

from bench.bittoken.encodings.bits import BitToken, bits
from bench.bittoken.training.losses import Predictions, Targets
from bench.bittoken.training.validation import scores
from bench.bittoken.vocabulary import Vocabulary
from bench.scoring import metrics

Said = tuple[list[str], list[str]]
"""The tokens that an answer says and those that it should; a number is written as its text."""


class Unsigned(BitToken):
    signed = False

    def code(self, values: np.ndarray) -> np.ndarray:
        return super().code(np.abs(values))


def vocabulary(writing: str) -> Vocabulary:
    made = Vocabulary("bittoken" if writing == "unsigned" else writing, ("5", "\u00b2", "\u0663"))
    if writing == "unsigned":
        made.encoding = Unsigned()
    return made


def scored(answers: list[Said], tasks: list[str], writing: str = "bittoken") -> list[list[float]]:
    """Score and exact match of each answer. Text tokens are written @0, @1 …"""
    words = vocabulary(writing)
    own = {**words.ids, **{f"@{i}": len(words.own) + i for i in range(3)}}

    def token(text: str) -> int:
        return own.get(text, own["<|num|>"])

    def value(text: str) -> float:
        return float(text) if text not in own else 0.0

    chosen = [token(text) for said, _ in answers for text in said]
    wanted = [token(text) for _, right in answers for text in right]
    sample = [row for row, (_, right) in enumerate(answers) for _ in right]
    logits = torch.nn.functional.one_hot(torch.tensor(chosen), len(words)).float()
    said_values = np.array([value(text) for said, _ in answers for text in said])
    outputs = torch.from_numpy(bits(said_values).astype(np.float32)) - 0.5
    truths = np.array([value(text) for _, right in answers for text in right])
    codes = torch.from_numpy(truths.view(np.int64)[:, None])
    targets = Targets(torch.arange(len(wanted)), torch.tensor(wanted), codes, torch.tensor(sample))
    said = Predictions(logits, None if words.encoding is None else outputs)
    score, exact = scores(said, targets, tasks, words)
    return np.stack([score, exact], 1).tolist()


EOS = "<|eos|>"
NUM = "<|num|>"


def number(said: str, right: str) -> Said:
    return [said, EOS], [right, EOS]


@pytest.mark.parametrize(
    ("said", "right", "exact"),
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
def test_a_number_is_exact_to_15_digits(said: str, right: str, exact: int) -> None:
    (row,) = scored([number(said, right)], ["minmax"])
    assert row == [exact, exact]


def test_log_smape_is_the_benchmarks() -> None:
    draw = np.random.default_rng(4)
    pairs = []
    for _ in range(3000):
        truth = Decimal(int(draw.integers(10**14, 10**15))).scaleb(int(draw.integers(-28, 1)))
        error = Decimal(10) ** int(draw.integers(-17, 3)) * Decimal(float(draw.normal()))
        sign = -1 if draw.random() < 0.3 else 1
        pairs.append((metrics.rounded(sign * truth * (1 + error)), sign * truth))
    found = scored([number(str(a), str(b)) for a, b in pairs], ["addition"] * len(pairs))
    for (value, truth), (score, exact) in zip(pairs, found, strict=True):
        expected = metrics.log_smape(value, truth)
        gap = abs(value / truth - 1)
        # Half a unit of the last bit of float64 against the gap: it matters in the last digits.
        assert score == pytest.approx(expected, abs=1e-6 if gap > 1e-10 else 0.01)
        assert exact == (value == truth)
        assert exact <= score


def test_what_is_no_number_scores_0() -> None:
    answers: list[Said] = [
        (["A", EOS], ["5.0", EOS]),
        (["nan", EOS], ["5.0", EOS]),
        (["-inf", EOS], ["5.0", EOS]),
        (["0.0", EOS], ["5.0", EOS]),
        (["-5.0", EOS], ["5.0", EOS]),
    ]
    assert scored(answers, ["addition"] * 5) == [[0, 0]] * 5


def test_a_right_number_that_does_not_end_is_no_exact_match() -> None:
    ((score, exact),) = scored([(["5.0", "5.0"], ["5.0", EOS])], ["addition"])
    assert (score, exact) == (1, 0)


def test_the_largest_numbers_do_not_overflow() -> None:
    largest = "1.7976931348623157e308"
    answers = [number(largest, "9e14"), number("-" + largest, "-9e14"), number(largest, "0.0")]
    assert scored(answers, ["addition"] * 3) == [[0, 0]] * 3


def test_the_sign_before_an_unsigned_number_counts() -> None:
    answers: list[Said] = [
        (["-", "5.0", EOS], ["-", "5.0", EOS]),
        (["5.0", "5.0", EOS], ["-", "5.0", EOS]),
        (["-", "5.5", EOS], ["-", "5.0", EOS]),
        (["5.5", EOS], ["5.0", EOS]),
    ]
    found = scored(answers, ["addition"] * 4, "unsigned")
    # |5.5 − 5| / 10.5 = 0.047619, lg −1.322219, over −15.
    close = [pytest.approx(0.0881480, abs=1e-6), 0]
    assert found == [[1, 1], [0, 0], close, close]


@pytest.mark.parametrize("writing", ["digit", "subword"])
def test_spelled_numbers_are_read_as_text(writing: str) -> None:
    right = ["-", "1", ".", "5", EOS]
    answers: list[Said] = [
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
    found = scored(answers, ["division"] * len(answers), writing)
    # 0.1 / 3.1: lg −1.491362; −125 and 51.5 are far away.
    assert found[0] == [1, 1]
    assert found[1] == [pytest.approx(0.0994241, abs=1e-6), 0]
    assert found[2][0] == pytest.approx(-np.log10(123.5 / 126.5) / 15)
    assert found[3:9] == [[0, 0]] * 6
    # The same character from the text vocabulary spells the same number, but is another token.
    assert found[9] == [1, 0]
    assert found[10:] == [[0, 0]] * 2


def test_comparisons_are_right_or_wrong() -> None:
    listed = ["[", "1", ", ", "2", "]", EOS]
    answers: list[Said] = [
        (["C", EOS], ["C", EOS]),
        (["D", EOS], ["C", EOS]),
        (listed, listed),
        (["[", "2", ", ", "2", "]", EOS], listed),
        (["[", "1", ", ", "2", ", ", EOS], listed),
        number("1.0000001", "1"),
    ]
    tasks = ["interval", "interval", "sorting", "sorting", "sorting", "minmax"]
    assert scored(answers, tasks) == [[1, 1], [0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]


def test_text_counts_the_share_of_right_tokens() -> None:
    right = ["@0", "@1", "3.5", "@2"]
    answers: list[Said] = [
        (right, right),
        (["@0", "@1", "3.6", "@1"], right),
    ]
    assert scored(answers, ["text", "text"]) == [[1, 1], [0.5, 0]]
