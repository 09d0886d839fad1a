"""Error rates on simulated answers: what is planted is found, and nothing else."""

from random import Random

import pytest

from numbench.forensics.calculator import calculator_evidence
from numbench.forensics.findings import explain
from studies.forensics.controls import exact_answers, float64_answers
from tests.forensics.simulated import questions, unrelated_answers, with_planted

RUNS = 24
SHORTENED = ("truncated", "rounded")
"""Alternatives that often have the same value as one of them."""


def test_errors_without_a_cause_are_not_explained() -> None:
    results = [explain(unrelated_answers(Random(seed))) for seed in range(RUNS // 2)]
    # Nominal: a significant count in 5 % of the runs. In 400 other runs there was none.
    assert sum(any(count.is_significant for count in result.counts) for result in results) <= 1
    counts = [count for result in results for count in result.counts]
    assert sum(count.p_value <= 0.05 for count in counts) <= 0.06 * len(counts)
    assert sum(result.matched for result in results) <= RUNS / 8


@pytest.mark.parametrize(
    ("task", "alternative"),
    [("std", "convention"), ("addition", "neighbour"), ("multiplication", "truncated_10")],
)
def test_planted_computation_is_found(task: str, alternative: str) -> None:
    found, others, shares = 0, 0, []
    for seed in range(RUNS // 2):
        random = Random(seed)
        answers = with_planted(unrelated_answers(random), task, alternative, 0.15, random)
        result = explain({task: answers[task]})
        significant = [count for count in result.counts if count.is_significant]
        (count,) = (c for c in result.counts if c.alternative == alternative)
        found += count in significant
        others += any(c != count and not c.alternative.startswith(SHORTENED) for c in significant)
        share = count.share
        shares.append((share.low, count.matches / count.decidable, share.high))
    assert found >= 0.95 * RUNS / 2
    assert others <= 4
    assert all(low < share < high for low, share, high in shares)


def test_unrelated_answers_show_no_float64_arithmetic() -> None:
    evidence = [calculator_evidence(unrelated_answers(Random(seed))) for seed in range(RUNS)]
    # Markov: a Bayes factor above 10 in at most 10 % of the runs; one above 1,000 in 0.1 %.
    assert sum(known.log10_factor > 1 for known in evidence) <= 9
    assert not any(known.is_flagged for known in evidence)


@pytest.mark.parametrize("digits", [12, 15, 16, 17])
def test_exact_oracle_is_never_flagged(digits: int) -> None:
    evidence = calculator_evidence(exact_answers(questions(), digits))
    assert not evidence.float64
    assert evidence.log10_factor <= 0


def test_float64_arithmetic_is_flagged() -> None:
    evidence = calculator_evidence(float64_answers(questions()))
    assert evidence.verdict == "float64 arithmetic"
    assert len(evidence.float64) == len(evidence.decisive) > 100
    assert evidence.share.low > 0.9
