"""`numbench compare`: a new run passes, fails, or cannot be compared with an old one."""

import json
from pathlib import Path
from typing import Any

import pytest

import numbench as nb
from numbench.errors import BadInput
from numbench.horizon.estimate import compare_horizons
from numbench.records import Response
from numbench.reporting.compare import compare
from numbench.stats.multiple_testing import holm
from tests.report import large_runs, runs
from tests.report.horizons import write_measurement
from tests.support.case_tables import each_row
from tests.support.command_line import Call

PAIR = ("addition", "minmax")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("before")
    return large_runs.run(folder / "old", large_runs.dataset(folder), lambda t, n: n >= 2)


def new(tmp_path: Path, says: large_runs.Says, **options: object) -> Path:
    return large_runs.run(tmp_path / "new", large_runs.dataset(tmp_path), says, **options)  # type: ignore[arg-type]


def test_a_run_as_good_as_before_passes(old: Path, tmp_path: Path, call: Call) -> None:
    done = call("compare", old, new(tmp_path, lambda t, n: n >= 2 + (t in PAIR)))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    (row,) = (line for line in lines if line.startswith("MinMax"))
    assert row.split()[:3] == ["MinMax", "95.0", "92.5"]
    assert "not significant" in row
    assert sum("not significant" in line for line in lines) == 10
    text = " ".join(done.out.split())
    assert "Smallest true drop that fails this comparison with a probability of 80%:" in text
    assert "The runs differ in model: 'old' (old), 'new' (new)." in text
    assert [line.split(",")[0] for line in lines if line.startswith(("old: ", "new: "))] == [
        "old: old (none)", "new: new (none)",
    ]  # fmt: skip
    assert lines[-1].startswith("PASS: All 95.0 -> 94.4, change -0.6 [")
    assert not (tmp_path / "results").exists()


def test_other_settings_are_noted(old: Path, tmp_path: Path) -> None:
    file = new(tmp_path, lambda t, n: n >= 2) / "run.json"
    info = json.loads(file.read_text())
    info["settings"]["temperature"] = 0.7
    info["display"] = "new, answered by other"
    file.write_text(json.dumps(info))
    noted, failed = (compare(old, file.parent, strict=strict) for strict in (False, True))
    assert "The runs differ in temperature: None (old), 0.7 (new)." in noted.notes
    assert "The runs differ in who answered: the model asked (old), other (new)." in noted.notes
    differences = "the runs differ in model, temperature, who answered"
    assert noted.summary.startswith("PASS: ") and noted.summary.endswith(f", {differences}")
    assert failed.failures == (differences,) and failed.summary.count(differences) == 1


def test_a_worse_task_fails_with_one_line(old: Path, tmp_path: Path, call: Call) -> None:
    fallen = new(tmp_path, lambda t, n: n >= (30 if t == "interval" else 2))
    done = call("compare", old, fallen)
    assert done.code == 1
    assert "Interval" in done.out and "worse" in done.out
    (line,) = done.err.splitlines()
    assert line.startswith(f"numbench: {fallen} falls short of {old}: All: 95.0 -> 87.2 (-7.8 [-")
    assert "] points, p" in line and ", 360 questions)" in line
    assert "but does not decide: Interval (to let it decide: --on interval)." in (
        " ".join(done.out.split())
    )
    done = call("compare", old, fallen, "--on", "interval,mean")
    (line,) = done.err.splitlines()
    assert done.code == 1 and "All" not in done.out
    assert "falls short" in line and "Interval: 95.0 -> 25.0 (-70.0 [-" in line
    assert "Mean" not in line and "40 questions)" in line
    assert call("compare", old, fallen, "--on", "addition").code == 0


def answers_of(changes: dict[str, tuple[int, bool | str | None]]) -> large_runs.Says:
    """Return the answers of a run, correct from the third item on, unless a task has changes.

    changes: for a task, or `*` for all others, the first item with other answers, and those:
    True, if all before are incorrect; else what they are instead.
    """

    def says(task: str, number: int) -> bool | str | None:
        first, answer = changes.get(task) or changes.get("*", (2, True))
        if answer is True:
            return number >= first
        return answer if number >= first else number >= 2

    return says


@each_row(__file__, "comparisons")
def test_what_fails_a_comparison(
    old: Path, tmp_path: Path, name: str, says: dict[str, Any], options: dict[str, Any],
    how: dict[str, Any], failures: list[str], notes: list[str],
) -> None:  # fmt: skip
    result = compare(old, new(tmp_path, answers_of(says), **options), **how)
    assert bool(result.failures) == bool(failures)
    for expected in failures:
        assert any(failure.startswith(expected) for failure in result.failures)
    for expected in notes:
        assert any(note.startswith(expected) for note in result.notes)


def test_a_better_run_passes_any_margin(old: Path, tmp_path: Path) -> None:
    worse = new(tmp_path, lambda t, n: n >= 30)
    result = compare(worse, old)
    assert result.failures == ()
    assert {task.verdict for task in result.tasks} == {"better"}
    assert compare(worse, old, margin=0.5).failures == ()


def test_tasks_without_common_answers_and_with_few(old: Path, tmp_path: Path) -> None:
    unanswered = new(tmp_path, lambda t, n: None if t == "std" else True)
    failures = compare(unanswered, old, margin=50).failures
    assert failures[0].startswith("no common answers, so nothing is excluded: Std; --partial")
    data = large_runs.dataset(tmp_path)
    for name, right in (("good", True), ("bad", False)):
        large_runs.run(tmp_path / name, data, lambda *_, r=right: r, tasks=PAIR, limit=3)
    with pytest.raises(BadInput, match="at most 3 common questions per task"):
        compare(tmp_path / "good", tmp_path / "bad")
    result = compare(tmp_path / "bad", tmp_path / "good", partial=True, on=["minmax"])
    assert result.failures == ("too few common answers to find any drop: MinMax",)
    # A run that is always wrong cannot fall, nor can one fall by more than its score.
    for name in ("bad", "good"):
        result = compare(tmp_path / name, tmp_path / name, partial=True)
        assert result.tasks[0].detectable > 90
        failures = [f for f in result.failures if f.startswith("no drop of All can be found: ")]
        assert len(failures) == (name == "bad")
        failures = compare(tmp_path / "bad", tmp_path / "bad", partial=True, margin=99).failures
        assert failures[-1].startswith("no regression can exceed 99 points from All 0.0; ")


def test_margin_passes_only_if_a_larger_regression_is_excluded(
    old: Path, tmp_path: Path, call: Call
) -> None:
    fallen = new(tmp_path, lambda t, n: n >= (7 if t == "minmax" else 2))
    wide = call("compare", old, fallen, "--margin", "30")
    assert (wide.code, wide.err) == (0, "")
    assert max(map(len, wide.out.splitlines()[:-1])) <= 80
    assert "Regression > 30" in wide.out
    # Not significantly worse, but forty items do not exclude a regression of 15 points.
    assert compare(old, fallen).failures == ()
    assert compare(old, fallen, margin=15.0).failures == ()
    narrow = call("compare", old, fallen, "--margin", "15", "--on", "minmax,addition")
    assert narrow.code == 1
    (line,) = narrow.err.splitlines()
    excluded = (
        "a regression of more than 15 points is not excluded (with 95% confidence, at least: "
    )
    assert line.endswith(f"{excluded}MinMax -24.5)")
    (row,) = (row for row in narrow.out.splitlines() if row.startswith("MinMax"))
    assert row.rstrip().endswith("not excluded") and row.split()[6] == "-24.5"
    said = " ".join(narrow.out.split())
    assert "Largest regression that is not excluded: 24.5 points (MinMax)." in said
    # Beyond the two-sided bound of -26.1, but not the one-sided one.
    assert compare(old, fallen, margin=25.0, on=["minmax"]).failures == ()


@pytest.mark.usefixtures("without_figures")
def test_a_baseline_stands_for_its_run(old: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "baseline.json"
    for _ in range(2):
        assert call("export", "--to", "baseline", "--out", file, old).code == 0
    fallen = new(tmp_path, lambda t, n: None if t == "std" and n > 30 else n >= 6)
    assert str(old) not in file.read_text()
    of_run, of_file = compare(old, fallen), compare(file, fallen)
    assert of_file.tasks == of_run.tasks and of_file.failures == of_run.failures != ()
    assert of_file.notes == of_run.notes
    assert of_file.old.path == file and of_file.old.signatures == of_run.old.signatures
    assert compare(file, old).tasks[0].change == 0
    report = nb.report([fallen, file], out=tmp_path / "report")
    _, kept = report.tables["summary"].rows
    of_old = nb.report([old], out=tmp_path / "old").tables["summary"].rows[0]
    assert kept.kind == "reference" and kept.cells["score"] == of_old.cells["score"]
    assert "baselines" in kept.group and kept.cells["model"].endswith("(baseline)")
    assert "1 reference: 1 significantly higher." in report._repr_markdown_()
    (part,) = nb.export(fallen, to="baseline", out=tmp_path / "part.json").files
    _, kept = nb.report([old, part], out=tmp_path / "part").tables["summary"].rows
    assert kept.part == "351 of 360 answered" and kept.cells["ranks"] is None
    assert "no run on its dataset" in call("report", file, "--out", tmp_path / "none").err
    for arguments, message in (
        ([file, fallen, "--protocol", "lenient"], "scores of the protocol exact, not lenient"),
        ([old / "run.json", fallen], "run.json"),
        ([file, file], "baseline.json"),
    ):
        done = call("compare", *arguments)
        assert (done.code, done.out) == (2, "") and message in done.err
        assert done.err.count("\n") == 1
    content = json.loads(file.read_text())
    for scores, message in (
        ({"nonsense": []}, "no task 'nonsense'"),
        ({"std": [100.5]}, "<= 100"),
        ({"std": [-1.0]}, ">= 0"),
        ({"std": [1.0]}, "1 scores of std, not"),
        ({}, "no task in common"),
    ):
        file.write_text(json.dumps(content | {"scores": scores}))
        done = call("compare", file, fallen)
        assert done.code == 2 and message in done.err
    file.write_text("notes")
    done = call("export", "--to", "baseline", "--out", file, old)
    assert done.code == 2 and "is not a baseline" in done.err and file.read_text() == "notes"


def test_annotations_of_github(old: Path, tmp_path: Path, call: Call) -> None:
    fallen = new(tmp_path, lambda t, n: n >= 9)
    lines = call("compare", old, fallen, "--format", "github").out.splitlines()
    assert any(line.startswith("::error title=numbench compare::FAIL: All 95.0") for line in lines)
    # What every night says is not a warning.
    assert not any(line.startswith("::warning title=numbench compare::Small") for line in lines)
    assert any(line.startswith("! Smallest true drop") for line in lines)
    partly = new(tmp_path / "partly", lambda t, n: n >= 2, tasks=PAIR)
    lines = call("compare", old, partly, "--partial", "--format", "github").out.splitlines()
    assert any(line.startswith("::warning title=numbench compare::Partial: 7") for line in lines)


def test_only_samples_that_were_answered_before_are_missed(tmp_path: Path) -> None:
    data = large_runs.dataset(tmp_path, ["addition"])

    def sampled(name: str, answered: int) -> Path:
        answers = {
            f"{n} {sample}": Response(
                item_id=f"addition-{n}", sample=sample, text=f'{{"answer": {1000 + n}}}'
            )
            for sample, count in enumerate((40, answered))
            for n in range(count)
        }
        return runs.run(tmp_path / name, data, answers, tasks=("addition",), samples=2)

    before, after = sampled("before", 30), sampled("after", 28)
    assert compare(before, before).failures == ()
    file, older = tmp_path / "baseline.json", tmp_path / "older.json"
    nb.export(before, to="baseline", out=file)
    older.write_text(file.read_text().replace('"answers"', '"unknown"'))
    for old, total in ((before, 70), (file, 70), (older, 80)):
        (failure,) = compare(old, after).failures
        assert failure.startswith(
            f"68 of {total} previously answered samples of Add answered again"
        )


def test_a_run_with_fewer_tasks_does_not_pass(old: Path, tmp_path: Path, call: Call) -> None:
    short = new(tmp_path, lambda t, n: n >= 2, tasks=PAIR, limit=20)
    done = call("compare", old, short)
    assert done.code == 1
    assert done.err == (
        f"numbench: {short} falls short of {old}: 7 of 9 tasks missing from the new run; 40 of "
        "80 previously answered questions of 2 tasks answered again (at least 99% required per "
        "task); --partial compares what both runs answered\n"
    )
    assert "FAIL: All " in done.out and "40 of 80 previously answered questions" in done.out
    passed = call("compare", old, short, "--partial")
    assert (passed.code, passed.err) == (0, "")
    said = " ".join(passed.out.split())
    assert "Partial: 7 of 9 tasks missing from the new run." in said
    assert "Partial: 40 of 80 previously answered questions of 2 tasks" in said
    # As on a disk that is full from the start.
    (short / "responses.jsonl").unlink()
    assert "too few common answers to find any drop" in compare(old, short).summary


@pytest.fixture(scope="module")
def runs_of_each_kind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    data = large_runs.dataset(folder)
    large_runs.run(folder / "old", data, lambda t, n: True, tasks=PAIR)
    large_runs.run(folder / "part", data, lambda t, n: True, tasks=("std",))
    large_runs.run(folder / "silent", data, lambda t, n: None, tasks=PAIR)
    other = large_runs.dataset(folder / "other", PAIR)
    large_runs.run(folder / "other" / "run", other, lambda t, n: True, tasks=PAIR)
    return folder


@each_row(__file__, "wrong_comparisons")
def test_wrong_use_is_one_line_and_code_2(
    runs_of_each_kind: Path, call: Call, monkeypatch: pytest.MonkeyPatch,
    arguments: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(runs_of_each_kind)
    done = call("compare", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err and done.err.count("\n") == 1


# Sizes of one digit, all of whose questions would have to be drawn, are not asked.
HORIZONS = {"long_addition": 24.0, "long_multiplication": 60.0, "copy": 300.0}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("horizons")
    shorter = {**HORIZONS, "long_multiplication": 16.0}
    return {
        "old": write_measurement(folder / "old", HORIZONS),
        "same": write_measurement(folder / "same", HORIZONS, seed=2),
        "worse": write_measurement(folder / "worse", shorter, seed=2),
        "fewer": write_measurement(folder / "fewer", {"long_addition": 24.0}, largest=128),
    }


def test_a_smaller_problem_size_fails_and_names_the_task(
    measured: dict[str, Path], call: Call
) -> None:
    failed = call("compare", measured["old"], measured["worse"])
    assert failed.code == 1 and max(map(len, failed.out.splitlines())) <= 80
    (line,) = failed.err.splitlines()
    assert "falls short of" in line and "Long mult: " in line and "(× 0." in line
    assert call("compare", measured["old"], measured["same"]).code == 0
    result = compare(measured["old"], measured["worse"])
    verdicts = {task.task: task.verdict for task in result.tasks}
    assert verdicts["long_multiplication"] == "worse"
    assert verdicts["copy"] == "not significantly different"
    backwards = compare(measured["worse"], measured["old"])
    assert not backwards.failures
    assert [task.verdict for task in backwards.tasks].count("better") == 1
    before, after = nb.load_horizons(measured["old"]), nb.load_horizons(measured["worse"])
    shifts = [compare_horizons(before[task], after[task]) for task in verdicts]
    p_values = holm([shift.p for shift in shifts])
    assert [task.p for task in result.tasks] == pytest.approx(p_values)


def test_ratios_beyond_the_sizes_are_bounds_or_not_known(
    measured: dict[str, Path], tmp_path: Path
) -> None:
    beyond = write_measurement(tmp_path / "beyond", {"long_addition": 5000.0})
    pairs = [("≥ × ", measured["old"], beyond), ("≤ × ", beyond, measured["old"])]
    for start, old, new in pairs:
        (task,) = compare(old, new, partial=True).tasks
        assert task.texts[2].startswith(start)
    (task,) = compare(beyond, beyond).tasks
    assert task.texts[2] == ""


def test_what_a_measurement_lacks_fails_unless_partial(
    measured: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"--on mean: .*old has no such task"):
        compare(measured["old"], measured["same"], on=["copy", "mean"])
    failures = compare(measured["old"], measured["fewer"]).failures
    assert failures == (
        "Long mult, Copy missing from the new run; --partial compares what both runs answered",
    )
    result = compare(measured["old"], measured["fewer"], partial=True)
    assert not result.failures
    assert "Partial: Long mult, Copy missing from the new run." in result.notes
    assert any("compared up to the smaller one: Long add 64" in note for note in result.notes)
    file = write_measurement(tmp_path / "part", HORIZONS) / "responses.jsonl"
    for kept, said in ((20, "Long add unfinished, or with fewer than 6"), (0, "too few common")):
        file.write_text("\n".join(file.read_text().splitlines()[:kept]))
        result = compare(measured["old"], file.parent)
        assert len(result.tasks) == bool(kept) and said in result.summary
        assert bool(compare(measured["old"], file.parent, partial=True).failures) == (not kept)
    with pytest.raises(BadInput, match="no answered items"):
        compare(file.parent, measured["old"])


def test_a_measurement_is_compared_with_another_only(
    measured: dict[str, Path], old: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="compare two of the same kind"):
        compare(old, measured["old"])
    with pytest.raises(BadInput, match="horizon runs have none"):
        compare(measured["old"], measured["same"], margin=2.0)
    other = write_measurement(tmp_path / "other", {"chain": 9.0})
    with pytest.raises(BadInput, match="no task in common"):
        compare(measured["old"], other)
