"""`numbench report --compare` on two measurements of horizons."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from numbench.errors import BadInput
from numbench.horizon.comparison import compare_horizons
from numbench.reporting import compare
from numbench.reporting.comparisons import BETTER, NOT_SIGNIFICANT, WORSE
from numbench.reporting.horizon_regression import (
    ComparedHorizon,
    HorizonRegression,
    horizon_regression_table,
)
from tests.command_line import CommandLine
from tests.reporting import runs
from tests.reporting.horizons import invented_horizon, write_measurement

HORIZONS = {"long_addition": 20.0, "long_multiplication": 10.0, "copy": 300.0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("horizons")
    shorter = {**HORIZONS, "long_multiplication": 2.0}
    return {
        "old": write_measurement(folder / "old", HORIZONS),
        "same": write_measurement(folder / "same", HORIZONS, seed=2),
        "worse": write_measurement(folder / "worse", shorter, seed=2),
        "fewer": write_measurement(folder / "fewer", {"long_addition": 20.0}, largest=128),
    }


def test_a_shorter_horizon_fails_and_names_the_task(folders: dict[str, Path]) -> None:
    result = compare(folders["old"], folders["worse"])
    assert isinstance(result, HorizonRegression)
    verdicts = {horizon.task: horizon.verdict for horizon in result.horizons}
    assert verdicts == {
        "long_addition": NOT_SIGNIFICANT,
        "long_multiplication": WORSE,
        "copy": NOT_SIGNIFICANT,
    }
    (failure,) = result.failures
    assert failure.startswith("Long mult: ") and " digits (ratio 0." in failure
    backwards = compare(folders["worse"], folders["old"])
    assert isinstance(backwards, HorizonRegression) and not backwards.failures
    assert [h.verdict for h in backwards.horizons].count(BETTER) == 1
    raw = [horizon.shift.p for horizon in result.horizons]
    assert result.horizons[1].p_tasks == pytest.approx(3 * raw[1])


def test_the_exit_code_says_whether_a_horizon_is_shorter(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    command = CommandLine(tmp_path, None)
    passed = command("report", "--compare", str(folders["old"]), str(folders["same"]))
    assert "not significant" in passed
    arguments = ("report", "--compare", str(folders["old"]), str(folders["worse"]))
    failed = command(*arguments, code=1)
    assert "falls short of" in failed and "Long mult: " in failed


def test_missing_tasks_fail_unless_partial(folders: dict[str, Path]) -> None:
    failures = compare(folders["old"], folders["fewer"]).failures
    assert failures == ("Long mult, Copy missing from the new run",)
    result = compare(folders["old"], folders["fewer"], partial=True)
    assert not result.failures
    assert "Partial: Long mult, Copy missing from the new run." in result.notes
    assert any("compared up to the smaller one: Long add 64" in note for note in result.notes)


def test_what_cannot_be_compared_is_an_error(folders: dict[str, Path], tmp_path: Path) -> None:
    ordinary = runs.mixed_run(tmp_path)
    with pytest.raises(BadInput, match="compare two of the same kind"):
        compare(ordinary, folders["old"])
    with pytest.raises(BadInput, match="horizons have none"):
        compare(folders["old"], folders["same"], margin=2.0)
    other = write_measurement(tmp_path / "other", {"chain": 9.0})
    with pytest.raises(BadInput, match="no task in common"):
        compare(folders["old"], other)


def test_the_table_fits_80_columns(folders: dict[str, Path]) -> None:
    result = compare(folders["old"], folders["worse"])
    assert isinstance(result, HorizonRegression)
    console = Console(width=80, file=io.StringIO())
    with console.capture() as capture:
        console.print(horizon_regression_table(result))
    assert "…" not in capture.get()
    assert max(map(len, capture.get().splitlines())) <= 80


def compared(task: str, old: float, new: float) -> ComparedHorizon:
    horizons = invented_horizon(task, old), invented_horizon(task, new)
    return ComparedHorizon(task, *horizons, compare_horizons(*horizons), 0.01)


def test_ratios_of_horizons_beyond_the_sizes_are_bounds_or_not_known() -> None:
    assert compared("long_max", 9000.0, 12000.0).ratio_text == ""
    assert compared("long_max", 100.0, 9000.0).ratio_text.startswith("≥ ")
    assert compared("long_max", 9000.0, 100.0).ratio_text.startswith("≤ 0.0")
    assert compared("copy", 40.0, 60.0).ratio_text[0] == "1"
