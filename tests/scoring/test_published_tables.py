"""The study's raw responses under both protocols, against the study's own published tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bench.paths import resource
from bench.scoring import ScoredRun, score_run, summarize
from bench.study import import_study
from bench.tasks import TASKS

Runs = dict[tuple[str, str], Path]


@pytest.fixture(scope="module")
def runs(paper_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The imported run folders by displayed name and level."""
    folders = import_study(paper_results, tmp_path_factory.mktemp("study"), lambda _: None)
    scored = {folder: score_run(folder).info for folder in folders}
    return {(info.display, info.reasoning): folder for folder, info in scored.items()}


def _published(name: str) -> dict[tuple[str, str], dict[str, str]]:
    with open(resource("published") / f"frontier_{name}.csv", newline="") as file:
        rows = {(row.pop("Model"), row.pop("Reasoning")): row for row in csv.DictReader(file)}
    headers = {task.display: task.name for task in TASKS.values()} | {"Sort": "sorting"}
    return {
        key: {headers[header]: cell for header, cell in row.items()} for key, row in rows.items()
    }


def _cells(run: ScoredRun, name: str) -> dict[str, str]:
    """One line of a table as the paper prints it."""
    cells = summarize(run)
    if name == "tokens":
        return {task: f"{cell.tokens:.0f}" for task, cell in cells.items()}
    if name == "log_smape":
        return {task: f"{cell.score:.1f}" for task, cell in cells.items()}
    measured = [task for task in cells if TASKS[task].metric == "log_smape"]
    return {task: f"{cells[task].exact_match:.1f}" for task in measured}


@pytest.mark.parametrize("name", ["log_smape", "exact_match", "tokens"])
def test_the_paper_protocol_reproduces_every_published_cell(runs: Runs, name: str) -> None:
    published = _published(name)
    assert runs.keys() & published.keys()
    for key, folder in runs.items():
        if key not in published:
            continue
        ours = _cells(score_run(folder, "paper"), name)
        theirs = {task: cell for task, cell in published[key].items() if task in ours}
        assert ours == theirs, key


REFERENCE = [
    ("GPT 5", "minimal", "mean", "59.8", "45.0"),
    ("GPT 5", "minimal", "std", "17.1", "6.2"),
    ("GPT 5", "minimal", "addition", "93.7", "88.0"),
    ("GPT OSS 120B", "maximal", "std", "51.5", "23.2"),
    ("GPT OSS 120B", "maximal", "exponentiation", "57.1", "14.2"),
    ("Gemini 2.5 Pro", "minimal", "mean", "85.1", "82.4"),
    ("Llama 4 Maverick", "none", "addition", "79.1", "54.4"),
    ("GPT OSS 120B", "maximal", "mean", "99.4", "96.8"),
]


@pytest.mark.parametrize(("model", "level", "task", "score", "match"), REFERENCE)
def test_the_exact_protocol_hits_the_reference_points(
    runs: Runs, model: str, level: str, task: str, score: str, match: str
) -> None:
    if (model, level) not in runs:
        pytest.skip(f"{model} {level} is not among the study's files here")
    cell = summarize(score_run(runs[model, level]))[task]
    assert (f"{cell.score:.1f}", f"{cell.exact_match:.1f}") == (score, match)


def test_a_number_cut_off_at_its_point_is_the_number_before_it(runs: Runs) -> None:
    if ("GPT OSS 120B", "maximal") not in runs:
        pytest.skip("GPT OSS 120B maximal is not among the study's files here")
    rows = score_run(runs["GPT OSS 120B", "maximal"]).rows["mean"]
    item, response, score = rows[118]
    assert response is not None
    assert (response.text, item.answer) == ('{"answer": 6545716006.', "6545716006.41955")
    assert (score.status, score.parsed, score.rule) == ("ok", "6545716006", 3)
