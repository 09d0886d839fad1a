"""Nightly use: a new run passes, falls, or cannot be compared; nothing passes in silence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import BadInput
from bench.records import ProtocolName
from bench.report import compare
from bench.tasks import TASKS
from tests.report import longer

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
    return longer.run(tmp_path / "old", longer.dataset(tmp_path), lambda t, n: n >= 2)


def new(tmp_path: Path, says: longer.Says, **options: object) -> Path:
    return longer.run(tmp_path / "new", longer.dataset(tmp_path), says, **options)  # type: ignore[arg-type]


def test_a_run_as_good_as_before_passes(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    done = numbench("report", "--compare", old, new(tmp_path, lambda t, n: n >= 2 + (t in PAIR)))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = (line for line in lines if line.startswith("MinMax"))
    assert row.split()[:4] == ["MinMax", "40", "95.0", "92.5"]
    assert "no difference shown" in row
    assert sum("no difference shown" in line for line in lines) == 10
    assert "power of 80 %, before Holm's correction" in " ".join(done.out.split())
    assert not (tmp_path / "results").exists()


def test_a_fall_fails_with_one_line_that_names_it(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    fallen = new(tmp_path, lambda t, n: n >= (30 if t == "interval" else 2))
    done = numbench("report", "--compare", old, fallen)
    assert done.code == 1
    assert "Interval" in done.out and "worse" in done.out
    (line,) = done.err.splitlines()
    assert line.startswith(f"numbench: {fallen} falls short of {old}: Interval fell from 95.0 to ")
    assert "to 25.0 (-70.0 [-" in line and ", 40 items)" in line
    assert "Add" not in line and "MinMax" not in line


def test_a_small_fall_in_every_task_fails_by_the_mean_of_all(old: Path, tmp_path: Path) -> None:
    found = compare(old, new(tmp_path, lambda t, n: n >= 3))
    (fall,) = found.falls
    assert fall.startswith("Mean of tasks fell from 95.0 to 92.5") and "360 items" in fall


def test_a_rise_passes(old: Path, tmp_path: Path) -> None:
    worse = new(tmp_path, lambda t, n: n >= 30)
    found = compare(worse, old)
    assert found.falls == ()
    assert {contrast.verdict for contrast in found.contrasts} == {"better"}


def test_a_fall_of_fewer_points_than_asked_passes(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    fallen = new(tmp_path, lambda t, n: n >= (16 if t == "minmax" else 2))
    assert numbench("report", "--compare", old, fallen, "--fail-below", "34").code == 1
    passed = numbench("report", "--compare", old, fallen, "--fail-below", "36")
    assert passed.code == 0 and "worse" in passed.out


def test_points_alone_are_no_fall(old: Path, tmp_path: Path) -> None:
    # Five of forty items are 12.5 points and may be noise.
    fallen = new(tmp_path, lambda t, n: n >= (7 if t == "minmax" else 2))
    assert compare(old, fallen, fail_below=1.0).falls == ()


@pytest.mark.parametrize("protocol", ["exact", "paper"])
@pytest.mark.parametrize("lost", [None, "failed"])
def test_a_run_that_half_failed_does_not_pass(
    old: Path, tmp_path: Path, lost: str | None, protocol: str
) -> None:
    half = new(tmp_path, lambda t, n: lost if t == "sorting" and n >= 20 else n >= 2)
    found = compare(old, half, protocol)  # type: ignore[arg-type]
    assert (
        "answers to 20 of 40 items of Sorting that were answered before (95% needed of each task)"
    ) in found.falls
    assert "Items that only one of the runs answered: 20." in found.notes


def test_a_run_that_answered_nothing_of_a_task_does_not_pass(old: Path, tmp_path: Path) -> None:
    found = compare(old, new(tmp_path, lambda t, n: None if t == "std" else n >= 2))
    (fall,) = found.falls
    assert fall.startswith("answers to 0 of 40 items of Std ")
    (std,) = (contrast for contrast in found.contrasts if contrast.task == "std")
    assert std.found is None


def test_one_lost_item_of_forty_passes_and_is_said(old: Path, tmp_path: Path) -> None:
    found = compare(old, new(tmp_path, lambda t, n: None if (t, n) == ("std", 5) else n >= 2))
    assert found.falls == ()
    assert "Items that only one of the runs answered: 1." in found.notes


def test_a_run_that_was_asked_less_does_not_pass(old: Path, tmp_path: Path, numbench) -> None:  # type: ignore[no-untyped-def]
    short = new(tmp_path, lambda t, n: n >= 2, tasks=PAIR, limit=20)
    done = numbench("report", "--compare", old, short)
    assert done.code == 1
    assert done.err == (
        f"numbench: {short} falls short of {old}: 7 of 9 tasks not asked again; answers to 40 of "
        "80 items of 2 tasks that were answered before (95% needed of each task)\n"
    )
    passed = numbench("report", "--compare", old, short, "--partial")
    assert (passed.code, passed.err) == (0, "")
    said = " ".join(passed.out.split())
    assert "Partial: 7 of 9 tasks not asked again." in said
    assert "Partial: answers to 40 of 80 items of 2 tasks" in said


@pytest.mark.parametrize(
    ("options", "falls"),
    [
        ({"tasks": tuple(task for task in TASKS if task != "std")}, ["Std not asked again"]),
        ({"limit": 37}, ["answers to 333 of 360 items of 9 tasks"]),
        ({"limit": 38}, []),
    ],
)
def test_a_task_or_a_twentieth_of_the_items_may_not_be_missing(
    old: Path, tmp_path: Path, options: dict[str, object], falls: list[str]
) -> None:
    found = compare(old, new(tmp_path, lambda t, n: n >= 2, **options))
    assert [fall.split(" that ")[0] for fall in found.falls] == falls


def test_a_partial_comparison_still_finds_a_fall(old: Path, tmp_path: Path) -> None:
    short = new(tmp_path, lambda t, n: n >= 30, tasks=PAIR)
    falls = compare(old, short, partial=True).falls
    assert [fall.split(" fell ")[0] for fall in falls] == ["Add", "MinMax"]


@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_a_run_without_any_answer_does_not_pass_even_partially(
    old: Path, tmp_path: Path, protocol: ProtocolName
) -> None:
    found = compare(old, new(tmp_path, lambda t, n: None), protocol, partial=True)
    assert found.falls[-1].startswith("answers to 0 of 360 items of 9 tasks")


def test_so_few_items_that_nothing_can_show_are_said(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path)
    for name, right in (("good", True), ("bad", False)):
        longer.run(tmp_path / name, data, lambda *_, r=right: r, tasks=PAIR, limit=3)
    found = compare(tmp_path / "good", tmp_path / "bad")
    assert found.notes[0] == "No difference can be shown on so few items: Add, MinMax."


def test_fewer_items_and_tasks_are_compared_and_said(old: Path, tmp_path: Path) -> None:
    short = new(tmp_path, lambda t, n: n >= 2, tasks=PAIR, limit=20, prompt="cd")
    found = compare(old, short, partial=True)
    assert found.falls == ()
    assert [(c.task, c.found and c.found.n) for c in found.contrasts if c.found] == [
        ("addition", 20),
        ("minmax", 20),
    ]
    notes = "\n".join(found.notes)
    assert "40 in the old run, 20 in the new one; compared on the first 20." in notes
    assert "Only the old run was asked Interval, Sorting, Mult" in notes
    assert "Prompts differ" in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "old"], "--compare"),
        (["--compare", "old", "nowhere"], "nowhere: no run here"),
        (["--compare", "old", "other/run"], "only runs on one dataset can be compared"),
        (["--compare", "old", "part"], "no task in common"),
        (["--compare", "silent", "old"], "no item is answered"),
        (["--compare", "old", "."], "name one of them"),
        (["old", "--compare", "old", "old"], "no others"),
        (["--fail-below", "1"], "needs --compare"),
        (["--partial"], "needs --compare"),
        (["--compare", "old", "old", "--fail-below", "-1"], "0 or more"),
        (["--compare", "old", "old", "--fail-below", "nan"], "0 or more"),
        (["--compare", "old", "old", "--fail-below", "few"], "--fail-below"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    tmp_path: Path,
    numbench,  # type: ignore[no-untyped-def]
    arguments: list[str],
    message: str,
) -> None:
    data = longer.dataset(tmp_path)
    longer.run(tmp_path / "old", data, lambda t, n: True, tasks=PAIR)
    longer.run(tmp_path / "part", data, lambda t, n: True, tasks=("std",))
    longer.run(tmp_path / "silent", data, lambda t, n: None, tasks=PAIR)
    other = longer.dataset(tmp_path / "other", PAIR)
    longer.run(tmp_path / "other" / "run", other, lambda t, n: True, tasks=PAIR)
    done = numbench("report", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err and done.err.count("\n") == 1


def test_a_folder_with_one_run_below_stands_for_it(old: Path, tmp_path: Path) -> None:
    (tmp_path / "night").mkdir()
    old.rename(tmp_path / "night" / "old")
    run = new(tmp_path / "night", lambda t, n: True)
    with pytest.raises(BadInput, match="holds 2 runs"):
        compare(tmp_path / "night", run)
    assert compare(run.parent / "new", run).falls == ()
