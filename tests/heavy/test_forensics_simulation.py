"""Error rates and power of the comparison with other computations, as docs/statistics.md states."""

from random import Random

import pytest

from numbench.forensics.calculator import calculator_evidence
from numbench.forensics.findings import explain
from studies.forensics.controls import plant_float64
from tests.forensics.simulated import unrelated_answers, with_planted
from tests.support.case_tables import each_row

pytestmark = pytest.mark.heavy

RUNS = 100


def test_runs_without_another_computation_have_no_findings() -> None:
    for seed in range(4 * RUNS):
        answers = unrelated_answers(Random(seed))
        assert not any(count.is_significant for count in explain(answers).counts), seed
        assert calculator_evidence(answers).log10_factor <= 0, seed


@each_row(__file__, "planted_computations")
def test_planted_computations_are_found_as_often_as_stated(
    task: str, alternative: str, share: float, stated: int
) -> None:
    found = 0
    for seed in range(RUNS):
        random = Random(seed)
        answers = with_planted(unrelated_answers(random), task, alternative, share, random)
        counts = explain(answers).counts
        found += any(c.is_significant and c.alternative == alternative for c in counts)
    assert found == stated


def test_a_tenth_of_float64_results_is_flagged_as_often_as_stated() -> None:
    flagged = sum(
        calculator_evidence(
            plant_float64(unrelated_answers(Random(seed)), 0.1, str(seed))
        ).is_flagged
        for seed in range(RUNS)
    )
    assert flagged == 80
