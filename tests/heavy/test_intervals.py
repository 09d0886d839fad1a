"""Coverage and power on simulated data like the real ones (`benchmarks/`)."""

from __future__ import annotations

import pytest

from benchmarks import coverage_simulation, verdict_simulation

pytestmark = pytest.mark.heavy
# With 4,000 samples, a coverage of 95 % is estimated to ±0.7 points in 95 % of simulations.


def test_intervals_of_scores_on_the_design_of_v1() -> None:
    rows = list(coverage_simulation.coverage_of_stratified_scores())
    for row in rows:
        assert 0.94 <= row.now <= 0.97, row
    # What the design changes: independent items would have much wider intervals.
    weak = [row for row in rows if row.name.startswith(("Mult, weak", "Mean, weak", "Div, weak"))]
    assert all(row.before >= 0.98 and row.before_width > 1.3 * row.now_width for row in weak)


def test_intervals_of_a_part_of_the_items() -> None:
    assert all(
        0.93 <= row.now <= 0.97 for row in coverage_simulation.coverage_of_part_of_the_items()
    )


@pytest.mark.parametrize(("loss", "highest"), [(0.5, 0.995), (0.1, 1.0), (0.999, 0.995)])
def test_intervals_near_the_ceiling(loss: float, highest: float) -> None:
    rows = list(coverage_simulation.coverage_near_the_ceiling(loss=loss))
    for row in rows:
        assert 0.935 <= row.now <= highest, row
    assert max(row.before for row in rows[:4]) < 0.9


def test_intervals_of_differences() -> None:
    for row in coverage_simulation.coverage_of_differences():
        assert row.now >= 0.93, row
        if "errors: log-sMAPE" not in row.name:
            assert row.now <= 0.97, row


def test_intervals_of_the_mean_of_tasks() -> None:
    assert all(
        0.94 <= row.now <= 0.97 for row in coverage_simulation.coverage_of_the_mean_of_tasks()
    )


def test_intervals_of_tokens_of_500_items() -> None:
    rows = [row for row in coverage_simulation.coverage_of_tokens() if row[0].startswith("500")]
    assert len(rows) == 4
    for name, coverage in rows:
        assert 0.88 <= coverage <= 0.97, name


def test_80_percent_power_is_80_percent() -> None:
    before, *now = verdict_simulation.simulated_power_of_matches()
    assert 0.53 <= before.power <= 0.58
    assert all(0.78 <= row.power <= 0.82 for row in now), now
    # Five standard errors of 1,000 samples.
    for row in (
        *verdict_simulation.simulated_power_of_scores(),
        *verdict_simulation.simulated_power_of_means(),
    ):
        assert 0.73 <= row.power <= 0.86, row


def test_regressions_of_the_margin_are_rarely_excluded() -> None:
    for row in verdict_simulation.false_non_inferiority():
        # Three standard errors above 5 %.
        assert row.power <= 0.065, row


def test_verdicts_on_equal_models_are_rare_unless_rare_losses_balance_small_gains() -> None:
    *skewed, symmetric = verdict_simulation.wrong_verdicts()
    assert symmetric[1] <= 0.045, symmetric
    assert max(verdicts for _, verdicts, _ in skewed) > 0.2
    assert all(excluded <= 0.07 for _, _, excluded in (*skewed, symmetric))


def test_rank_sets_are_all_right_in_95_percent() -> None:
    assert verdict_simulation.wrong_rank_sets(samples=300) <= 0.08


def test_planned_items_have_the_planned_precision() -> None:
    for row in verdict_simulation.planned_precision():
        assert row.half_width == pytest.approx(row.planned, rel=0.05), row
