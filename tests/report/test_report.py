"""Reports as a whole: the files, the tables, the terminal, and what each says about its runs."""

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import numbench as nb
from numbench.api import load_scores
from numbench.api import report as write_report
from numbench.core.safe_console import SafeConsole
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import Run, read_run, write_run
from numbench.records import Item, Response, RunInfo
from numbench.reporting.answer import answers
from numbench.reporting.build import ReportResult, build_tables
from numbench.reporting.data import ReportData
from numbench.reporting.figures import FIGURES
from numbench.reporting.read import read_report_data
from numbench.reporting.tables.render import markdown
from numbench.reporting.terminal import terminal_report
from numbench.reporting.warnings import AFFECTS_SCORES, report_warnings
from numbench.tasks import PAPER_TASKS, TASKS
from tests.report import large_runs, runs
from tests.report.synthetic import add_task, write_plugin_run


@pytest.fixture(scope="module")
def report(synthetic_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    return write_report(synthetic_runs, out=tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the first questions of the dataset `paper`."""
    out = tmp_path_factory.mktemp("paper") / "run"
    return nb.run("baseline/bfloat16", dataset="paper", limit=10, out=out).path


@pytest.fixture(scope="module")
def paper_data(paper_run: Path) -> ReportData:
    return read_report_data([paper_run])


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def elsewhere(run: Run) -> RunInfo:
    """Return the description of a run for a copy in another folder."""
    dataset = str((run.path / run.info.dataset.path).resolve())
    return msgspec.structs.replace(
        run.info, dataset=msgspec.structs.replace(run.info.dataset, path=dataset)
    )


def on_screen(data: ReportData, width: int = 80, all_warnings: bool = False) -> str:
    console = SafeConsole(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    result = ReportResult(Path("out"), data, build_tables(data))
    console.print(terminal_report(result, width, all_warnings))
    return console.export_text()


def test_every_table_is_written_unrounded_in_each_format(report: ReportResult) -> None:
    content: dict[str, Any] = json.loads((report.out / "report.json").read_text())
    assert len(content["runs"]) == 9
    for run in content["runs"]:
        stored = json.loads(Path(run["path"], "run.json").read_text())
        assert (run["settings"], run["limit"]) == (stored["settings"], stored.get("limit"))
    names = {path.stem for path in (report.out / "tables").glob("*.csv")}
    assert names == content["tables"].keys() == {p.stem for p in report.out.glob("tables/*.md")}
    assert {path.stem for path in report.out.glob("tables/*.tex")} == {
        "summary", "log_smape", "exact_match", "tokens",
    }  # fmt: skip
    assert "\\begin{longtable}{llr" in (report.out / "tables/log_smape.tex").read_text()
    assert "\n|---|---|---:|" in (report.out / "tables/log_smape.md").read_text()
    assert {row["kind"] for row in content["tables"]["comparisons"]} == {"run"}
    for name, expected in content["tables"].items():
        for line, row in zip(rows(report.out, name), expected, strict=True):
            for field, value in row.items():
                if isinstance(value, dict) and "value" in value:
                    assert float(line[field]) == value["value"]
                    low = line[f"{field}_low"]
                    assert (float(low) if low else None) == value["low"]
                elif isinstance(value, float):
                    assert float(line[field]) == value


@pytest.mark.slow
def test_two_reports_of_the_same_runs_are_the_same_bytes(
    synthetic_runs: Path, tmp_path: Path
) -> None:
    first, again = (
        write_report(synthetic_runs, out=tmp_path / name, formats=("svg", "png", "pdf")).out
        for name in ("first", "again")
    )
    files = [path for path in first.rglob("*") if path.is_file()]
    assert {"svg", "png", "pdf"} < {path.suffix[1:] for path in files} and len(files) > 50
    for path in files:
        assert (again / path.relative_to(first)).read_bytes() == path.read_bytes(), path.name


def test_datasets_have_headings_and_ranks_of_their_own(report: ReportResult) -> None:
    groups = report.tables["summary"].groups
    assert len(groups) == 4
    screen = on_screen(report.data)
    for group in report.data.datasets:
        assert group.heading in groups
        assert group.label in screen
    # One run that is complete, or has all tasks, has no rank without another one.
    assert not report.data.ranks["all"]


def test_a_run_of_fewer_tasks_or_answers_says_so(report: ReportResult) -> None:
    notes = "\n".join(report.tables["summary"].notes)
    assert "Model A (low): All is the mean over 2 of 5 tasks (Add, Std), so it has no" in notes
    assert "Model A (high): 149 of 150 samples are answered." in notes
    assert "2 of 5 tasks" in on_screen(report.data)


def test_incomplete_runs_are_below_and_change_no_rank(tmp_path: Path) -> None:
    data = large_runs.dataset(tmp_path)
    every = [
        large_runs.run(tmp_path / name, data, lambda t, n, first=first: n >= first)  # type: ignore[misc]
        for name, first in (("good", 4), ("bad", 30))
    ]
    part = large_runs.run(tmp_path / "part", data, lambda t, n: True, limit=30)
    complete, known = (read_report_data(folders) for folders in (every, [part, *every]))
    assert [run.model for run in known.runs] == ["good", "bad", "part"]
    assert complete.ranks["std"] == {0: (1, 1), 1: (2, 2)}
    assert known.ranks == complete.ranks
    assert "the highest of 2 complete runs on longer@" in answers(known)[0].sentences[0]
    assert answers(known, "std")[0].sentences[0].startswith("Std: good (none) scores 90.0 [")
    (answer,) = answers(read_report_data([part]))
    assert "270 of 360 answered" in answer.sentences[0]


def test_only_runs_on_the_dataset_paper_have_references(
    paper_run: Path, paper_data: ReportData, report: ReportResult
) -> None:
    for built in report.tables.values():
        assert {row.kind for row in built.rows} == {"run"}
    assert "numbench run --dataset paper" in " ".join(on_screen(report.data).split())
    assert len(paper_data.references) == 13
    assert "--dataset" not in on_screen(paper_data)
    assert not read_report_data([paper_run], references=False).references
    assert not read_report_data([paper_run], protocol="lenient").references


def test_cells_without_responses_have_the_published_value_marked(paper_data: ReportData) -> None:
    tables = build_tables(paper_data)
    marked = {
        (row.cells["model"], field): row.cells[field]
        for row in tables["log_smape"].rows
        if row.cells["level"] == "maximal"
        for field in row.published - {"all"}
    }
    assert len(marked) == 11
    assert marked["GPT 5", "exponentiation"] == (78.6, None, None)
    # The mean beside it is the paper's own, not one of published and re-scored values.
    (gpt,) = [one for one in paper_data.references if one.label == "GPT 5 (maximal)"]
    mean = paper_data.estimate(gpt)
    assert mean and round(mean.value, 1) == 93.9 and mean.low is None
    assert "78.6 (published)" in markdown(tables["log_smape"])
    assert re.search(r"^All .* 93\.9  ", on_screen(paper_data), re.M)
    # They are in no comparison: GPT 5 has 8 tasks with responses.
    assert not [r for r in tables["comparisons"].rows
                if r.cells["other"] == "GPT 5 (maximal)" and r.cells["task"] == "Exp"]  # fmt: skip


def test_an_imported_run_takes_the_place_of_its_reference(paper_run: Path, tmp_path: Path) -> None:
    run = read_run(paper_run)
    info = msgspec.structs.replace(
        run.info, display="Kimi K2 0905", reasoning="none", source="imported"
    )
    write_run(tmp_path / "imported", info, run.responses.values())
    data = read_report_data([tmp_path / "imported"])
    assert len(data.references) == 12
    assert "Kimi K2 0905" not in [one.model for one in data.references]


def test_the_answer_compares_the_runs_first_then_prices_then_published_models(
    report: ReportResult, paper_data: ReportData
) -> None:
    first = answers(report.data)[0]
    assert len(first.sentences) == 3
    score, others, price = first.sentences
    assert score.startswith("Model A (none) scores 38.3 [")
    assert "(mean of 5 tasks), the only complete run with the same tasks on one@" in score
    start, *parts = others.split("; ")
    assert start.startswith("Compared with it: Model A (high), 48.0 points ahead [39.1, 56.8]")
    assert start.endswith("on the 149 questions both answered")
    assert len(parts) == 3 and parts[-1] == "2 more: table Comparisons."
    assert price.startswith("Price: Model A (none) ") and "and USD 0.955 [" in price
    assert price.count("tokens per answer") == 2
    for row in (row for row in report.tables["summary"].rows if row.run is not None):
        known = load_scores(report.data.runs[row.run].scored.path)["generated_tokens"].median()
        assert row.cells["median_tokens"] == (known if known == known else None)
    (known,) = answers(paper_data)
    assert len(known.sentences) == 2
    assert known.sentences[1].startswith("13 published configurations: ")
    assert "The nearest is Llama 4 Maverick (none), " in known.sentences[1]


def test_no_run_has_the_first_rank_above_one_that_is_better(tmp_path: Path) -> None:
    """A model without responses to a task is better on the others, at a lower published mean."""
    paper = open_dataset("paper")
    responses = {
        item.id: nearly_right(item, index)
        for items in paper.by_task.values()
        for index, item in enumerate(items)
    }
    run = runs.run(tmp_path / "run", paper, responses, display="Mine", reasoning="none")
    data = read_report_data([run])
    mean = data.estimate(data.runs[0])
    best = next(one for one in data.references if one.label == "GPT 5 (maximal)")
    published = data.estimate(best)
    assert mean and published and mean.value > published.value
    (row,) = [
        r for r in build_tables(data)["comparisons"].rows
        if r.cells["other"] == best.label and str(r.cells["task"]).startswith("All")
    ]  # fmt: skip
    assert (row.cells["verdict"], row.cells["task"]) == ("worse", "All (8 of 9 tasks)")
    assert data.ranks["all"][0].best > 1
    sentence = answers(data)[0].sentences[-1]
    assert re.search(r"\b[123] significantly higher", sentence)
    assert sentence.endswith("on the 8 tasks both answered.")


def nearly_right(item: Item, index: int) -> Response:
    """Return a correct answer, except for a few questions of the tasks but for Exp."""
    is_right = item.task == "exponentiation" or index % 16
    true = f"[{', '.join(item.answer)}]" if isinstance(item.answer, tuple) else item.answer
    shown = f'"{true}"' if item.task == "interval" else true
    text = f'{{"answer": {shown}}}' if is_right else '{"answer": 0}'
    return Response(item_id=item.id, text=text, finish_reason="stop")


def test_runs_of_one_name_are_told_apart_by_their_folders(
    synthetic_runs: Path, tmp_path: Path
) -> None:
    run = read_run(synthetic_runs / "none")
    responses = list(run.responses.values())
    write_run(tmp_path / "first", elsewhere(run), responses)
    write_run(tmp_path / "again", elsewhere(run), responses[:60])
    data = read_report_data([tmp_path])
    assert {one.note for one in data.runs} == {"first", "again"}
    screen = on_screen(data)
    heads = screen.partition("\nAll ")[0]
    assert heads.count("first") == heads.count("again") == 1
    # Equal answers to few common questions are neither better nor worse.
    (known,) = answers(data)
    assert "Compared with it: Model A (none, " in known.sentences[1]
    assert ", 0.0 points apart [" in known.sentences[1]
    same = build_tables(data)["summary"]
    assert {row.cells["model"] for row in same.rows} == {"Model A (first)", "Model A (again)"}


@pytest.mark.parametrize("which", ["synthetic", "paper"])
def test_the_terminal_fits_80_columns(
    which: str, report: ReportResult, paper_data: ReportData
) -> None:
    data = report.data if which == "synthetic" else paper_data
    lines = on_screen(data).splitlines()
    assert max(map(len, lines)) <= 80
    full = on_screen(data, all_warnings=True).splitlines()
    assert max(map(len, full)) <= 80
    assert not [line for line in (*lines, *full) if "…" in line and "more" not in line]


def test_a_dataset_of_many_tasks_has_a_row_for_each(tmp_path: Path) -> None:
    for name in ("forms", "context"):
        for model in ("float64", "bfloat16"):
            nb.run(f"baseline/{model}", dataset=name, limit=1, out=tmp_path / f"{name}-{model}")
    data = read_report_data([tmp_path])
    tables = build_tables(data)
    forms, context = (open_dataset(name).tasks for name in ("forms", "context"))
    assert {c.task for c in tables["log_smape"].columns if c.task} == set(context)
    rows = {(row.task, row.run): row for row in tables["by_task"].rows}
    assert {task for task, _ in rows} == set(forms)
    for (task, index), row in rows.items():
        assert index is not None
        run = data.runs[index]
        for field, measure in (("score", "score"), ("by_value", "by_value")):
            assert row.cells[field] == data.estimate(run, measure, task)  # type: ignore[arg-type]
    lines = on_screen(data).splitlines()
    assert max(map(len, lines)) <= 80
    for task in forms:
        (line,) = [x for x in lines if x.startswith(f"{TASKS[task].display} ")]
        # Score with its interval and score by value, of both runs.
        assert len(re.findall(r"\d\.\d \[[\d., ]+\] +\d+\.\d|–", line)) >= 2
    (radar,) = [spec for spec in FIGURES if spec.name == "radar"]
    assert radar.draw(read_report_data([tmp_path / "forms-float64"])) == "more than 12 tasks"


@pytest.mark.parametrize("width", [80, 50])
def test_the_terminal_tells_long_names_apart_at_any_width(
    width: int, synthetic_runs: Path, tmp_path: Path
) -> None:
    run = read_run(synthetic_runs / "none")
    for kind in ("Instruct", "Thinking"):
        name = f"Qwen/Qwen3-30B-A3B-{kind}-2507-FP8"
        info = msgspec.structs.replace(elsewhere(run), display=name)
        write_run(tmp_path / kind, info, run.responses.values())
    screen = on_screen(read_report_data([tmp_path]), width)
    lines = screen.splitlines()
    assert max(map(len, lines)) <= width
    # Names are wrapped, and numbers are whole.
    table = screen.split("Compared")[0]
    assert "Instruct" in table and "Thinking" in table and "…" not in table


def test_an_exact_match_task_of_a_plugin_is_called_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_task(monkeypatch)
    tables = build_tables(read_report_data([write_plugin_run(tmp_path)]))
    assert "The score of these tasks is exact match: Largest." in tables["log_smape"].notes
    (row,) = tables["exact_match"].rows
    assert row.cells["largest"] == tables["log_smape"].rows[0].cells["largest"]
    assert "Largest: exact match" in on_screen(read_report_data([tmp_path / "run"]))


def test_runs_of_a_task_that_is_not_installed_are_left_out(
    tmp_path: Path, synthetic_runs: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        add_task(patch)
        run = write_plugin_run(tmp_path)
    data = read_report_data([run, synthetic_runs / "none"])
    assert [known.model for known in data.runs] == ["Model A"]
    assert "task 'largest' is not installed" in report_warnings(data)[AFFECTS_SCORES][0]
    assert "not installed" in on_screen(data, all_warnings=True)
    with pytest.warns(UserWarning, match="'largest' is not installed"):
        assert set(load_scores([run, synthetic_runs / "none"])["model"]) == {"Model A"}
    with pytest.raises(BadInput, match="'largest' is not installed"):
        read_report_data([run])


def test_warnings_are_said_once_with_what_to_do(report: ReportResult) -> None:
    texts = report.warnings
    assert len(set(texts)) == len(texts)
    assert any("the command of the run resumes it" in text for text in texts)
    assert any("--protocol lenient reads them" in text for text in texts)
    assert json.loads((report.out / "report.json").read_text())["warnings"] == list(texts)


def test_the_hint_at_the_lenient_protocol_has_its_score(tmp_path: Path) -> None:
    dataset = large_runs.dataset(tmp_path, ["addition"])

    def says(task: str, index: int) -> bool | str:
        return f"We add the two numbers. The sum is **{1000 + index}**." if index % 2 else True

    run = large_runs.run(tmp_path / "prose", dataset, says, tasks=["addition"])
    exact, lenient = read_report_data([run]), read_report_data([run], "lenient")
    (hint,) = [text for text in report_warnings(exact)[AFFECTS_SCORES] if "lenient" in text]
    scores = [data.estimate(data.runs[0]) for data in (lenient, exact)]
    shown = " instead of ".join(f"{score.value:.1f}" for score in scores if score)
    assert f"reads them for a score of {shown} (20: Add 20)" in hint and "100.0" in shown


def test_objects_are_short_in_a_notebook_and_have_a_table(report: ReportResult) -> None:
    assert len(repr(report)) < 200
    shown = report._repr_markdown_()
    assert "| Model A " in shown and "Model A \\(high" not in shown
    scored = report.data.runs[0].scored
    assert scored
    assert len(repr(scored)) < 300
    horizons = nb.load_horizons(report.data.horizons[0].path)
    assert len(repr(horizons)) < 1000


def test_names_of_other_people_are_text_in_every_format(
    synthetic_runs: Path, tmp_path: Path
) -> None:
    run = read_run(synthetic_runs / "none")
    hostile = "=cmd|' /C calc'!A0 <script>alert(1)</script> \\input{x} \x1b[31m"
    changed = msgspec.structs.replace(elsewhere(run), display=hostile)
    write_run(tmp_path / "run", changed, run.responses.values())
    result = write_report(tmp_path / "run", out=tmp_path / "out")
    assert "'=cmd" in (result.out / "tables/summary.csv").read_text()
    assert "\\textbackslash{}input" in (result.out / "tables/summary.tex").read_text()
    for path in ("tables/summary.md", "report.html"):
        assert "<script>alert" not in (result.out / path).read_text()
    assert "<script>" not in result._repr_markdown_()
    assert "\x1b" not in on_screen(result.data)


def test_a_difference_outside_of_noise_may_be_denied_by_the_paired_test(tmp_path: Path) -> None:
    """One run is right in five tasks, the other in four: a narrow interval, and a large p."""
    data = large_runs.dataset(tmp_path)
    five = list(PAPER_TASKS)[:5]
    one = large_runs.run(tmp_path / "one", data, lambda t, n: t in five, limit=20)
    two = large_runs.run(tmp_path / "two", data, lambda t, n: t not in five, limit=20)
    (found,) = answers(read_report_data([one, two], references=False))
    (sentence,) = (text for text in found.sentences if text.startswith("Compared with it: two"))
    assert "not significantly different by the paired test" in sentence


def test_runs_that_differ_only_in_their_date_are_a_trend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trend = [spec for spec in FIGURES if spec.name == "trend"]
    monkeypatch.setattr("numbench.reporting.figures.FIGURES", trend)
    data = large_runs.dataset(tmp_path, ("addition", "minmax"))
    times = {1: "01T03:00:00+00:00", 2: "01T21:00:00-06:00", 3: "03T08:30:00+05:30", 4: "unknown"}
    for day, wrong in ((3, 8), (1, 2), (2, 4), (4, 0)):
        folder = tmp_path / f"night-{day}"
        large_runs.run(folder, data, lambda _, n, w=wrong: n >= w, tasks=("addition", "minmax"))
        info = json.loads((folder / "run.json").read_text())
        info |= {"model": "m", "display": "M", "created": f"2026-11-{times[day]}"}
        (folder / "run.json").write_text(json.dumps(info))
    other = large_runs.run(tmp_path / "other", data, lambda *_: True, tasks=("addition", "minmax"))
    nights = sorted(tmp_path.glob("night-*"))
    result = write_report([*nights, other], out=tmp_path / "report")
    rows = [row.cells for row in result.tables["trend"].rows]
    assert [row["date"] for row in rows] == [f"2026-11-0{day} 03:00" for day in (1, 2, 3)]
    values = [row["score"].value for row in rows]
    assert values == sorted(values, reverse=True) and all(row["score"].low for row in rows)
    assert (tmp_path / "report/figures/trend.svg").is_file()
    assert "trend" not in write_report([nights[0], other], out=tmp_path / "report").tables
    assert not (tmp_path / "report/figures/trend.svg").exists()
