"""The tables of our own measurements."""

from pathlib import Path

from numbench.tasks import PAPER_TASKS, TASK_GROUPS
from numbench.transforms import open_variant
from studies.csv_tables import read_tables
from studies.measured.__main__ import RESULTS, build, main
from tests.support.command_line import CommandLine

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
