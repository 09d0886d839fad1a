"""The weight of single answers, and of all."""

import math
from decimal import Decimal
from random import Random

import pytest

from numbench.forensics.answers import NumericAnswer
from numbench.forensics.calculator import calculator_evidence, weigh
from numbench.forensics.computations import Question
from numbench.tasks.items import make_item

WRONG = "0.31000000000000007"
SUM = Question(make_item("addition", "+", ("0.1", "0.2"), {}))


def evidence_of(*numbers: str):  # type: ignore[no-untyped-def]
    answers = [NumericAnswer(SUM, Decimal(number)) for number in numbers]
    return calculator_evidence({"addition": answers})


def test_answers_that_are_not_float64_weigh_against_it() -> None:
    # ∫ (1 − π)ⁿ dπ = 1 / (n + 1)
    log_factor, share = weigh([0.0] * 99)
    assert math.exp(log_factor) == pytest.approx(1 / 100, rel=1e-4)
    # The posterior is Beta(1, n + 1).
    assert share.high == pytest.approx(1 - 0.025 ** (1 / 100), rel=1e-2)


def test_mixture_is_integrated_over_the_share() -> None:
    # ∫ (1 + 9 π)(1 − π) dπ = 1 + 4 − 3 = 2
    assert math.exp(weigh([10.0, 0.0])[0]) == pytest.approx(2.0, rel=1e-4)
    # Many float64 results: no overflow.
    assert weigh([500.0] * 2000)[0] == pytest.approx(2000 * math.log(500), rel=1e-2)


def test_shortened_answer_agrees_with_both_values() -> None:
    evidence = evidence_of("0.3", "0.30", "0.30000000000000004", WRONG, "0.31")
    # Two digits do not separate the float64 result from the exact value.
    assert [(a.is_float64, a.is_exact) for a in evidence.decisive] == [
        (True, False),
        (False, False),
    ]


def test_verdict_follows_from_the_bayes_factor() -> None:
    wrong = [f"0.3000000000000000{digit}" for digit in range(1, 10) if digit != 4]
    assert evidence_of(*wrong * 3).verdict == "no sign"
    assert evidence_of(wrong[0]).verdict == "undecided"


def test_repeated_error_is_not_strong_evidence() -> None:
    single = evidence_of("0.30000000000000004", *[WRONG] * 30).float64[0]
    common = evidence_of(*["0.30000000000000004"] * 20, *[WRONG] * 11).float64[0]
    assert single.likelihood_ratio > 10
    assert common.likelihood_ratio < 2


def test_truncated_float64_result_is_not_one() -> None:
    # 0.7 + 0.1 is 0.7999999999999999 in float64: 0.79999 is rather 0.8, off by one unit.
    question = Question(make_item("addition", "+", ("0.7", "0.1"), {}))
    answers = [NumericAnswer(question, Decimal(text)) for text in ("0.79999", "0.8")]
    evidence = calculator_evidence({"addition": answers})
    assert not evidence.float64


def test_interval_covers_shares_drawn_from_the_prior() -> None:
    random, runs, chance, covered = Random(5), 300, 0.02, 0
    for _ in range(runs):
        share = random.random()
        is_float64 = (random.random() < share + (1 - share) * chance for _ in range(60))
        _, interval = weigh([1 / chance if known else 0.0 for known in is_float64])
        covered += interval.low <= share <= interval.high
    assert covered / runs == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / runs))
