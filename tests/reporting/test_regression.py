"""Comparison of a new run with an old one: it passes, fails, or cannot be compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from numbench.cli import main
from numbench.errors import BadInput
from numbench.records import ProtocolName
from numbench.reporting import compare
from numbench.tasks import PAPER_TASKS
from tests.reporting import large_runs

PAIR = ("addition", "minmax")


class Ended:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, captured: pytest.CaptureResult[str]) -> None:
        self.code, self.out, self.err = code, captured.out, captured.err


@pytest.fixture
def numbench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["numbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, capsys.readouterr())

    return call


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return large_runs.run(tmp_path / "old", large_runs.dataset(tmp_path), lambda t, n: n >= 2)


def new(tmp_path: Path, says: large_runs.Says, **options: object) -> Path:
    return large_runs.run(tmp_path / "new", large_runs.dataset(tmp_path), says, **options)  # type: ignore[arg-type]


def test_a_run_as_good_as_before_passes(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    done = numbench("report", "--compare", old, new(tmp_path, lambda t, n: n >= 2 + (t in PAIR)))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = (line for line in lines if line.startswith("MinMax"))
    assert row.split()[:4] == ["MinMax", "40", "95.0", "92.5"]
    assert "not significant" in row
    assert sum("not significant" in line for line in lines) == 10
    assert "80 % power, before Holm's correction" in " ".join(done.out.split())
    assert not (tmp_path / "results").exists()


def test_a_worse_task_fails_with_one_line(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    fallen = new(tmp_path, lambda t, n: n >= (30 if t == "interval" else 2))
    done = numbench("report", "--compare", old, fallen)
    assert done.code == 1
    assert "Interval" in done.out and "worse" in done.out
    (line,) = done.err.splitlines()
    assert line.startswith(f"numbench: {fallen} falls short of {old}: Interval: 95.0 -> ")
    assert "-> 25.0 (-70.0 [-" in line and ", 40 items)" in line
    assert "Add" not in line and "MinMax" not in line


def test_a_small_drop_in_every_task_fails_by_the_mean_of_tasks(old: Path, tmp_path: Path) -> None:
    result = compare(old, new(tmp_path, lambda t, n: n >= 3))
    (fall,) = result.failures
    assert fall.startswith("Mean of tasks: 95.0 -> 92.5") and "360 items" in fall


def test_a_better_run_passes(old: Path, tmp_path: Path) -> None:
    worse = new(tmp_path, lambda t, n: n >= 30)
    result = compare(worse, old)
    assert result.failures == ()
    assert {contrast.verdict for contrast in result.contrasts} == {"better"}


def test_a_drop_below_the_given_points_passes(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    fallen = new(tmp_path, lambda t, n: n >= (16 if t == "minmax" else 2))
    assert numbench("report", "--compare", old, fallen, "--fail-below", "34").code == 1
    passed = numbench("report", "--compare", old, fallen, "--fail-below", "36")
    assert passed.code == 0 and "worse" in passed.out


def test_margin_passes_only_if_a_larger_regression_is_excluded(
    old: Path,
    tmp_path: Path,
    numbench,  # type: ignore[no-untyped-def]
) -> None:
    fallen = new(tmp_path, lambda t, n: n >= (7 if t == "minmax" else 2))
    wide = numbench("report", "--compare", old, fallen, "--margin", "30")
    assert (wide.code, wide.err) == (0, "")
    assert max(map(len, wide.out.splitlines())) <= 80
    assert "Regression > 30" in wide.out
    # Not significantly worse, but forty items do not exclude a regression of 15 points.
    assert compare(old, fallen).failures == ()
    narrow = numbench("report", "--compare", old, fallen, "--margin", "15")
    assert narrow.code == 1
    (line,) = narrow.err.splitlines()
    assert "MinMax: a regression of more than 15 points is not excluded (-12.5, with 95 %" in line
    assert "Interval" not in line
    (row,) = (row for row in narrow.out.splitlines() if row.startswith("MinMax"))
    assert row.rstrip().endswith("not excluded") and row.split()[7] == "-24.5"
    assert any("excluded, equivalent" in row for row in narrow.out.splitlines())
    # Beyond the two-sided bound of -26.1, but not the one-sided one.
    assert compare(old, fallen, margin=25.0).failures == ()


def test_improvement_is_not_equivalent_and_passes_any_margin(old: Path, tmp_path: Path) -> None:
    worse = new(tmp_path, lambda t, n: n >= 30)
    result = compare(worse, old, margin=0.5)
    assert (result.failures, result.margin) == ((), 0.5)


def test_margin_fails_if_answers_are_missing(old: Path, tmp_path: Path) -> None:
    half = new(tmp_path, lambda t, n: True if n < 20 or t != "std" else None)
    assert any("answered again" in failure for failure in compare(old, half, margin=50).failures)


def test_margin_fails_for_a_task_without_common_answers(old: Path, tmp_path: Path) -> None:
    unanswered = new(tmp_path, lambda t, n: None if t == "std" else True)
    failures = compare(unanswered, old, margin=50).failures
    assert "no common answers, so nothing is excluded: Std, Mean of tasks" in failures


def test_a_drop_that_is_not_significant_passes(old: Path, tmp_path: Path) -> None:
    # Five of forty items are 12.5 points and may be noise.
    fallen = new(tmp_path, lambda t, n: n >= (7 if t == "minmax" else 2))
    assert compare(old, fallen, fail_below=1.0).failures == ()


@pytest.mark.parametrize("protocol", ["exact", "paper"])
@pytest.mark.parametrize("lost", [None, "failed"])
def test_a_run_with_half_of_its_requests_failed_does_not_pass(
    old: Path, tmp_path: Path, lost: str | None, protocol: str
) -> None:
    half = new(tmp_path, lambda t, n: lost if t == "sorting" and n >= 20 else n >= 2)
    result = compare(old, half, protocol)  # type: ignore[arg-type]
    assert (
        "20 of 40 previously answered items of Sorting answered again (at least 99% required per "
        "task)"
    ) in result.failures
    assert "Items answered by only one run: 20." in result.notes


def test_a_run_without_answers_for_a_task_does_not_pass(old: Path, tmp_path: Path) -> None:
    result = compare(old, new(tmp_path, lambda t, n: None if t == "std" else n >= 2))
    (fall,) = result.failures
    assert fall.startswith("0 of 40 previously answered items of Std ")
    (std,) = (contrast for contrast in result.contrasts if contrast.task == "std")
    assert std.result is None


def test_a_run_with_fewer_tasks_does_not_pass(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    short = new(tmp_path, lambda t, n: n >= 2, tasks=PAIR, limit=20)
    done = numbench("report", "--compare", old, short)
    assert done.code == 1
    assert done.err == (
        f"numbench: {short} falls short of {old}: 7 of 9 tasks missing from the new run; 40 of "
        "80 previously answered items of 2 tasks answered again (at least 99% required per task)\n"
    )
    passed = numbench("report", "--compare", old, short, "--partial")
    assert (passed.code, passed.err) == (0, "")
    said = " ".join(passed.out.split())
    assert "Partial: 7 of 9 tasks missing from the new run." in said
    assert "Partial: 40 of 80 previously answered items of 2 tasks" in said


@pytest.mark.parametrize(
    ("options", "falls"),
    [
        (
            {"tasks": tuple(task for task in PAPER_TASKS if task != "std")},
            ["Std missing from the new run"],
        ),
        ({"limit": 39}, ["351 of 360 previously answered items of 9 tasks"]),
        ({"limit": 40}, []),
    ],
)
def test_a_task_or_a_fortieth_of_the_items_may_not_be_missing(
    old: Path, tmp_path: Path, options: dict[str, object], falls: list[str]
) -> None:
    result = compare(old, new(tmp_path, lambda t, n: n >= 2, **options))
    assert [fall.split(" answered again")[0] for fall in result.failures] == falls


def test_a_partial_comparison_still_finds_a_drop(old: Path, tmp_path: Path) -> None:
    short = new(tmp_path, lambda t, n: n >= 30, tasks=PAIR)
    falls = compare(old, short, partial=True).failures
    assert [fall.split(":")[0] for fall in falls] == ["Add", "MinMax"]


@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_a_run_without_any_answer_does_not_pass_even_partially(
    old: Path, tmp_path: Path, protocol: ProtocolName
) -> None:
    result = compare(old, new(tmp_path, lambda t, n: None), protocol, partial=True)
    assert result.failures[-1].startswith("0 of 360 previously answered items of 9 tasks")


def test_too_few_items_are_a_note(tmp_path: Path) -> None:
    data = large_runs.dataset(tmp_path)
    for name, right in (("good", True), ("bad", False)):
        large_runs.run(tmp_path / name, data, lambda *_, r=right: r, tasks=PAIR, limit=3)
    result = compare(tmp_path / "good", tmp_path / "bad")
    assert result.notes[0] == "Too few items to detect any difference: Add, MinMax."


def test_a_partial_comparison_notes_what_was_not_compared(old: Path, tmp_path: Path) -> None:
    short = new(tmp_path, lambda t, n: n >= 2, tasks=PAIR, limit=20, prompt="cd")
    result = compare(old, short, partial=True)
    assert result.failures == ()
    assert [(c.task, c.result and c.result.n) for c in result.contrasts if c.result] == [
        ("addition", 20),
        ("minmax", 20),
    ]
    notes = "\n".join(result.notes)
    assert "Items per task: 40 (old), 20 (new); compared: the 20 that both include." in notes
    assert "Only the old run includes Interval, Sorting, Mult" in notes
    assert "Prompts differ" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "old"], "--compare"),
        (["--compare", "old", "nowhere"], "nowhere does not exist"),
        (["--compare", "old", "other/run"], "only runs on the same dataset can be compared"),
        (["--compare", "old", "part"], "no task in common"),
        (["--compare", "silent", "old"], "no answered items"),
        (["--compare", "old", "."], "name one of them"),
        (["old", "--compare", "old", "old"], "no others"),
        (["--fail-below", "1"], "needs --compare"),
        (["--partial"], "needs --compare"),
        (["--compare", "old", "old", "--fail-below", "-1"], "0 or more"),
        (["--compare", "old", "old", "--fail-below", "nan"], "0 or more"),
        (["--compare", "old", "old", "--fail-below", "few"], "--fail-below"),
        (["--margin", "1"], "needs --compare"),
        (["--compare", "old", "old", "--margin", "0"], "between 0 and 100"),
        (["--compare", "old", "old", "--margin", "nan"], "between 0 and 100"),
        (["--compare", "old", "old", "--margin", "1", "--fail-below", "1"], "use one of them"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    tmp_path: Path,
    numbench,  # type: ignore[no-untyped-def]
    arguments: list[str],
    message: str,
) -> None:
    data = large_runs.dataset(tmp_path)
    large_runs.run(tmp_path / "old", data, lambda t, n: True, tasks=PAIR)
    large_runs.run(tmp_path / "part", data, lambda t, n: True, tasks=("std",))
    large_runs.run(tmp_path / "silent", data, lambda t, n: None, tasks=PAIR)
    other = large_runs.dataset(tmp_path / "other", PAIR)
    large_runs.run(tmp_path / "other" / "run", other, lambda t, n: True, tasks=PAIR)
    done = numbench("report", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err and done.err.count("\n") == 1


def test_a_folder_that_contains_one_run_can_be_named(old: Path, tmp_path: Path) -> None:
    (tmp_path / "night").mkdir()
    old.rename(tmp_path / "night" / "old")
    run = new(tmp_path / "night", lambda t, n: True)
    with pytest.raises(BadInput, match="contains 2 runs"):
        compare(tmp_path / "night", run)
    assert compare(run.parent / "new", run).failures == ()
