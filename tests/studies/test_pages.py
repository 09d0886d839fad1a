"""The committed pages of the studies follow from their tables, and these from the responses."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import studies.forensics.__main__ as forensics
import studies.horizon.__main__ as horizon
import studies.measured.__main__ as measured
import studies.multitask.__main__ as multitask
import studies.products.__main__ as products
import studies.rescored.__main__ as rescored
from numbench.tasks import PAPER_TASKS, TASK_GROUPS
from numbench.transforms import open_variant
from studies.csv_tables import read_tables
from studies.findings.__main__ import render as render_findings
from studies.measured.__main__ import RESULTS, build, main
from tests.studies.files import assert_is_committed
from tests.support.command_line import CommandLine

ROOT = Path(__file__).parents[2]
OF_TABLES = [rescored, forensics, measured]
STORED: dict[str, tuple[Path, Callable[[], Mapping[str, bytes]]]] = {
    "findings": (ROOT, render_findings),
    "products": (ROOT / products.RESULTS, lambda: products.render(ROOT / products.RESULTS)),
    "multitask": (ROOT / multitask.RESULTS, lambda: multitask.render(ROOT / multitask.RESULTS)),
}


@pytest.mark.parametrize("study", OF_TABLES, ids=lambda study: study.RESULTS.name)
def test_the_committed_page_follows_from_the_committed_tables(study: ModuleType) -> None:
    folder = ROOT / study.RESULTS
    assert_is_committed(study.render(read_tables(folder)), folder)
    assert {path.suffix for path in folder.iterdir()} <= {".csv", ".json", ".md", ".svg"}


@pytest.mark.parametrize("name", STORED)
def test_the_committed_page_follows_from_what_is_stored(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    folder, render = STORED[name]
    assert_is_committed(render(), folder)


@pytest.mark.slow
@pytest.mark.parametrize("study", OF_TABLES[:2], ids=lambda study: study.RESULTS.name)
def test_the_committed_tables_follow_from_the_responses(
    study: ModuleType, paper_results: Path
) -> None:
    assert_is_committed(study.build(paper_results), ROOT / study.RESULTS)


@pytest.mark.heavy
def test_the_page_of_problem_sizes_follows_from_the_responses(paper_results: Path) -> None:
    pages = horizon.render(horizon.read_responses(paper_results))
    assert_is_committed(pages, ROOT / horizon.RESULTS)


def test_digits_are_counted_from_the_first_to_the_last_nonzero_one() -> None:
    operands = (("0",), ("4000", "0.003"), ("6741.74", "-85784589.7707"), ("10.10", "7"))
    assert [horizon.question_digits(each) for each in operands] == [1, 1, 12, 3]


def test_a_missing_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescored.main([str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.endswith("none: no such folder\n")
    assert not (tmp_path / "out").exists()


def test_the_readme_has_the_numbers_of_the_findings() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    findings = readme.partition("## What we found")[2].partition("\n## ")[0]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", findings.replace("8%", "Eight percent"))
    assert len(numbers) > 15
    for number in numbers:
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[,.]\d)", page), number


ROOT = Path(__file__).parents[2]


def test_the_committed_tables_have_whole_runs() -> None:
    tables = read_tables(ROOT / RESULTS)
    answers = tables["answers"].groupby("run")
    for run in tables["runs"]["run"]:
        # Whole runs only: the same number of questions of each task.
        counts = answers.get_group(run)["task"].value_counts()
        assert set(counts.index) == set(PAPER_TASKS) and counts.nunique() == 1
    for dataset, rows in tables["sheet"].groupby("dataset"):
        assert set(rows["row"]) == set(TASK_GROUPS[str(dataset)])
        counted = rows["correct"] + rows["other_form"] + rows["unanswered"]
        assert (counted <= rows["questions"]).all()


def test_a_run_without_an_answer_is_refused(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    numbench("run", "--model", "baseline/float32", "--limit", "1", "--out", "run")
    chosen = ("--dataset", "forms", "--tasks", "max_integer", "--limit", "4", "--out", "forms")
    numbench("run", "--model", "baseline/float64", *chosen)
    tables = build([tmp_path / "run", tmp_path / "forms"])
    assert tables["answers.csv"].count(b"\n") == 10
    assert tables["sheet.csv"].decode().splitlines()[1:] == [
        "forms,float64 arithmetic,forms,max_integer,4,3,0,0,0"
    ]
    responses = tmp_path / "run" / "responses.jsonl"
    responses.write_text("".join(responses.read_text().splitlines(keepends=True)[1:]))
    assert main(["--out", str(tmp_path / "out"), str(tmp_path / "run")]) == 1
    assert not (tmp_path / "out").exists()


def test_the_prompts_that_ask_for_a_call_allow_tools_and_name_the_function() -> None:
    prompts = open_variant(ROOT / "studies/measured/prompts", None).prompts
    assert prompts.options.tools
    assert all("calculator" in str(prompts.system_prompt(task)) for task in PAPER_TASKS)
