"""Tables, figures and means follow the tasks of the runs' datasets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from numbench.plot_style import plot_style
from numbench.records import Response
from numbench.reporting import ReportResult, report
from numbench.reporting.console import terminal_table
from numbench.reporting.entries import measure, published_entries
from numbench.reporting.figure_registry import FIGURES
from numbench.reporting.figure_spec import SkippedFigure
from numbench.reporting.report_data import ReportData
from numbench.scoring import score_run
from numbench.tasks import PAPER_TASKS
from tests.reporting import plugins, runs

PAPER = tuple(PAPER_TASKS)


def header(out: Path, table: str) -> list[str]:
    with (out / "tables" / f"{table}.csv").open(newline="") as file:
        return next(csv.reader(file))


def first_row(out: Path, table: str) -> dict[str, str]:
    with (out / "tables" / f"{table}.csv").open(newline="") as file:
        return next(csv.DictReader(file))


def write_run(folder: Path, tasks: tuple[str, ...], **options: object) -> Path:
    data = runs.dataset(folder, tasks=tasks)
    responses = {key: r for key, r in _responses().items() if key.split("-")[0] in tasks}
    return runs.run(folder / "run", data, responses, tasks=tasks, **options)  # type: ignore[arg-type]


def _responses() -> dict[str, Response]:
    return runs.all_right() | {"addition-0": runs.said("addition", 0, '{"answer": 11}')}


def report_data(folder: Path, tasks: tuple[str, ...], published: bool = True) -> ReportData:
    runs_ = measure([score_run(write_run(folder, tasks))])
    return ReportData(runs_, published_entries() if published else ())


def draw(name: str, data: ReportData) -> Figure | SkippedFigure:
    (spec,) = (spec for spec in FIGURES if spec.name == name)
    with plot_style():
        result = spec.draw(data)
    if isinstance(result, (Figure, SkippedFigure)):
        return result
    return next(iter(result.values()))


def console_header(result: ReportResult) -> list[str]:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(terminal_table(result))
    return capture.get().splitlines()[1].split()


@pytest.mark.usefixtures("only_one_figure")
def test_an_installed_task_changes_nothing_for_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path, PAPER)
    before = report([run], out=tmp_path / "before")
    plugins.add_task(monkeypatch)
    after = report([run], out=tmp_path / "after")
    assert runs.everything(tmp_path / "after") == runs.everything(tmp_path / "before")
    assert after.warnings == before.warnings == ()
    assert console_header(after) == console_header(before)
    assert len(console_header(after)) == 3 + 9


def test_an_installed_task_has_no_panel_for_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.add_task(monkeypatch)
    data = report_data(tmp_path, PAPER)
    for name, panels in (("tokens_vs_score", 9), ("difficulty", 9), ("score_vs_items", 9)):
        figure = draw(name, data)
        assert isinstance(figure, Figure)
        assert "Modulo" not in " ".join(axes.get_title() for axes in figure.axes)
        assert len(figure.axes) == panels
    radar = draw("radar", data)
    assert isinstance(radar, Figure) and len(radar.axes[0].get_xticks()) == 9


@pytest.mark.usefixtures("without_figures")
def test_a_task_of_the_dataset_has_a_column_after_those_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.add_task(monkeypatch)
    out = tmp_path / "out"
    result = report([write_run(tmp_path, (*PAPER, "modulo"))], out=out)
    paper = ["Add", "Mult", "Div", "Mean", "Std", "MinMax", "Interval", "Sort", "Exp"]
    assert header(out, "log_smape") == ["Model", "Reasoning", *paper, "Modulo"]
    assert header(out, "exact_match")[-2:] == ["Exp", "Modulo"]
    assert header(out, "tokens")[-2:] == ["Exp", "Modulo"]
    assert header(out, "tokens_ci")[-2:] == ["Modulo_low", "Modulo_high"]
    assert header(out, "ranks")[-2:] == ["Modulo", "Mean of tasks"]
    assert first_row(out, "log_smape")["Modulo"] == "100.0"
    assert first_row(out, "overall")["Tasks"] == "10 of 10"
    mean = json.loads((out / "report.json").read_text())["comparisons"]["runs"][0]["overall"]
    scores = [float(first_row(out, "log_smape")[name]) for name in (*paper, "Modulo")]
    assert mean["value"] == pytest.approx(sum(scores) / 10, abs=0.01)
    assert console_header(result)[-1] == "Modul"
    page = (out / "report.html").read_text()
    assert '"modulo":"Modulo"' in page and 'data-task="modulo"' in page


def test_a_task_of_the_dataset_has_a_panel_and_an_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.add_task(monkeypatch)
    data = report_data(tmp_path, (*PAPER, "modulo"))
    for name in ("results", "tokens_vs_score", "difficulty", "score_vs_items", "correct_digits"):
        figure = draw(name, data)
        assert isinstance(figure, Figure)
        assert any(axes.get_title().startswith("Modulo") for axes in figure.axes), name
    radar = draw("radar", data)
    assert isinstance(radar, Figure)
    assert "Modulo" in [text.get_text() for text in radar.axes[0].get_xticklabels()]


SUBSET = ("sorting", "addition", "mean")


@pytest.mark.usefixtures("without_figures")
def test_a_dataset_with_some_tasks_of_the_paper(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = report([write_run(tmp_path, SUBSET)], out=out)
    # No warning about tasks that the dataset does not have.
    assert result.warnings == ()
    # CSV files keep the paper's columns.
    assert len(header(out, "log_smape")) == 2 + 9
    assert first_row(out, "overall")["Tasks"] == "3 of 3"
    row = first_row(out, "log_smape")
    mean = (float(row["Add"]) + float(row["Mean"]) + float(row["Sort"])) / 3
    assert float(first_row(out, "overall")["Mean of tasks"]) == pytest.approx(mean, abs=0.06)
    assert console_header(result) == ["Model", "Level", "All", "Add", "Mean", "Sort"]


def test_figures_of_a_dataset_with_some_tasks_have_only_their_panels(tmp_path: Path) -> None:
    data = report_data(tmp_path, SUBSET)
    tokens, radar = draw("tokens_vs_score", data), draw("radar", data)
    assert isinstance(tokens, Figure) and isinstance(radar, Figure)
    displays = [PAPER_TASKS[task].display for task in data.tasks]
    assert [axes.get_title() for axes in tokens.axes] == displays
    assert [text.get_text() for text in radar.axes[0].get_xticklabels()] == displays
    pareto = draw("pareto_tokens", data)
    assert isinstance(pareto, Figure)
    # The run and all published models have these three tasks.
    points = [line for line in pareto.axes[0].get_lines() if line.get_marker() == "o"]
    assert len(points) == 1 + len(published_entries())


def test_radar_plots_of_fewer_than_three_tasks_are_skipped(tmp_path: Path) -> None:
    data = report_data(tmp_path, ("addition", "minmax"))
    assert draw("radar", data) == SkippedFigure("fewer than 3 tasks")


@pytest.mark.usefixtures("without_figures")
def test_the_mean_over_a_single_task_is_not_tested_twice(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path, tasks=("minmax",))
    for name in ("a", "b"):
        answers = {f"minmax-{i}": runs.right("minmax", i) for i in range(4)}
        runs.run(tmp_path / "runs" / name, data, answers, display=name, tasks=("minmax",))
    report([tmp_path / "runs"], out=tmp_path / "out")
    comparisons = json.loads((tmp_path / "out" / "report.json").read_text())["comparisons"]
    assert [pair["task"] for pair in comparisons["pairs"]] == ["minmax"]
    assert [run["overall"]["value"] for run in comparisons["runs"]] == [100, 100]
