"""The study's raw responses: their import, their scores, and the published tables."""

import csv
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from numbench.core.csv_files import read_csv
from numbench.core.installation import resource_folder
from numbench.dataset.store import open_dataset, read_published_labels
from numbench.journal.run_folder import read_info
from numbench.scoring import ScoredRun, score_run, summarize
from numbench.tasks import PAPER_TASKS
from studies.raw_responses import import_study
from tests.support.case_tables import each_row

Runs = dict[tuple[str, str], Path]


@pytest.fixture(scope="module")
def runs(paper_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Imported run folders by displayed model name and reasoning level."""
    messages: list[str] = []
    folders = import_study(paper_results, tmp_path_factory.mktemp("study"), messages.append)
    assert not messages
    infos = {folder: read_info(folder) for folder in folders}
    return {(info.display, info.reasoning): folder for folder, info in infos.items()}


@pytest.fixture(scope="module")
def scored(runs: Runs) -> Callable[[str, str], ScoredRun]:
    """A function that scores a run by the protocol `exact`, once."""
    return cache(lambda model, level: score_run(runs[model, level]))


def test_all_real_files_are_imported(paper_results: Path, runs: Runs) -> None:
    dataset = open_dataset("paper")
    assert len(runs) == 13
    for folder in runs.values():
        lines = (folder / "responses.jsonl").read_bytes().count(b"\n")
        assert lines == 500 * len(read_info(folder).tasks)
    labels = read_published_labels(dataset.path)
    names = {"Addition": "addition", "Sorting": "sorting", "Std": "std"}
    for name, task in names.items():
        (path,) = paper_results.glob(f"{name}*500_shuffle.csv")
        rows = [(cells["text_prompt"], cells["answer"]) for _, cells in read_csv(path)]
        assert rows == [(item.prompt, labels[item.id]) for item in dataset.by_task[task]]


def _published(name: str) -> dict[tuple[str, str], dict[str, str]]:
    with open(resource_folder("published") / f"frontier_{name}.csv", newline="") as file:
        rows = {(row.pop("Model"), row.pop("Reasoning")): row for row in csv.DictReader(file)}
    headers = {task.display: task.name for task in PAPER_TASKS.values()} | {"Sort": "sorting"}
    return {
        key: {headers[header]: cell for header, cell in row.items()} for key, row in rows.items()
    }


def _cells(run: ScoredRun, name: str) -> dict[str, str]:
    """Return one row of a table as the paper prints it."""
    cells = summarize(run)
    if name == "tokens":
        return {task: f"{cell.tokens:.0f}" for task, cell in cells.items()}
    if name == "log_smape":
        return {task: f"{cell.score:.1f}" for task, cell in cells.items()}
    measured = [task for task in cells if PAPER_TASKS[task].metric == "log_smape"]
    return {task: f"{cells[task].exact_match:.1f}" for task in measured}


def test_paper_protocol_reproduces_every_published_cell(runs: Runs) -> None:
    checked: Counter[str] = Counter()
    for key, folder in runs.items():
        scored = score_run(folder, "paper")
        for name in ("log_smape", "exact_match", "tokens"):
            published, cells = _published(name)[key], _cells(scored, name)
            assert cells == {task: published[task] for task in cells}, (key, name)
            checked[name] += len(cells)
    assert checked == {"log_smape": 106, "exact_match": 67, "tokens": 106}
    assert checked.total() == 279


@each_row(__file__, "reference_scores")
def test_exact_protocol_reproduces_the_reference_scores(
    scored: Callable[[str, str], ScoredRun],
    model: str, level: str, task: str, score: str, match: str,
) -> None:  # fmt: skip
    """Failed requests do not count; with one, Llama 4 Maverick has 79.1 and 54.4 in addition."""
    cell = summarize(scored(model, level))[task]
    assert (f"{cell.score:.1f}", f"{cell.exact_match:.1f}") == (score, match)


def test_number_that_is_cut_off_is_not_an_answer(
    scored: Callable[[str, str], ScoredRun],
) -> None:
    rows = scored("GPT OSS 120B", "maximal").rows["mean"]
    item, response, score = rows[118]
    assert response is not None
    assert (response.text, item.answer) == ('{"answer": 6545716006.', "6545716006.41955")
    assert (score.status, score.parsed, score.rule) == ("truncated", None, None)
