"""Cost limits in many simulated runs: the provider's ledger compared with limit and journal.

No margin was chosen with these seeds. Without a bound on the cost of one answer, no rule can keep
every limit.
"""

import math
from pathlib import Path

import pytest

from benchmarks.gate import simulate
from tests.runner.cost_scenarios import HIGHEST_COST, Knowledge, share_over_limit, suites_over_limit

pytestmark = pytest.mark.heavy

SEEDS = range(130_000, 130_300)
SUITE_SEEDS = range(140_000, 140_150)
ALLOWED = {"highest": 0.0, "expected": 0.02, "nothing": 0.02}
"""The share of runs that may exceed their limit."""


@pytest.mark.parametrize("knowledge", ["highest", "expected", "nothing"])
def test_what_is_billed_stays_below_the_limit(tmp_path: Path, knowledge: Knowledge) -> None:
    # Rarely, two answers are more expensive than what was kept for them.
    share = share_over_limit(SEEDS, tmp_path / "one", knowledge, 2 * HIGHEST_COST)
    assert share <= ALLOWED[knowledge]
    assert suites_over_limit(SUITE_SEEDS, tmp_path / "all", knowledge) <= ALLOWED[knowledge]


pytestmark = pytest.mark.heavy

SAMPLES = 400


def test_the_gate_finds_the_drop_that_it_states_and_rarely_fails_without_one() -> None:
    for row in simulate(SAMPLES):
        shares = [float(cell.rstrip("%")) / 100 for cell in row if cell.endswith("%")]
        _, alarm, lost, in_one_task, weaker, alarm_of_tasks, task = shares
        # Three standard errors.
        assert max(alarm, alarm_of_tasks) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SAMPLES), row
        for power in (lost, in_one_task, task):
            assert 0.78 - 0.06 <= power <= 0.84 + 0.06, row
        assert weaker >= 0.72, row
