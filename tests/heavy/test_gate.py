"""The drop that `numbench compare` says it detects, on the scores of published models."""

import math

import pytest

from benchmarks.gate import simulate

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
