"""The numbers of a report on the synthetic runs, and on real ones, against other computations."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.records import PromptRef
from numbench.reporting.comparisons import ALL
from numbench.reporting.data import ReportData
from numbench.reporting.tables import comparisons, samples, tools, variants
from numbench.reporting.tables.model import Table, table_rows
from numbench.reporting.values import Configuration
from numbench.scoring import score_run
from tests.report import runs as made

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())


@pytest.fixture(scope="module")
def runs(synthetic_data: ReportData, synthetic_runs: Path) -> dict[str, Configuration]:
    """The runs by their folder."""
    return {
        run.scored.path.relative_to(synthetic_runs).as_posix(): run for run in synthetic_data.runs
    }


def same(actual: object, expected: object) -> None:
    """Assert that numbers, also nested ones, are equal but for rounding."""
    if isinstance(expected, list):
        assert isinstance(actual, tuple | list)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            same(one, other)
    else:
        assert actual == (None if expected is None else pytest.approx(expected, rel=1e-8, abs=1e-8))


def close(actual: object, expected: Any) -> None:
    """Assert that a value is equal, and its interval to the digit that is printed."""
    if isinstance(expected, dict):
        expected = [expected[name] for name in ("difference", "low", "high")]
    if expected is None:
        assert actual is None
    else:
        assert isinstance(actual, tuple)
        same(actual[0], expected[0])
        assert actual[1:] == pytest.approx(tuple(expected[1:]), rel=0, abs=0.05)


def test_scores_per_task(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    assert runs.keys() == GOLDEN["runs"].keys()
    for name, run in runs.items():
        for task, expected in GOLDEN["runs"][name].items():
            cell = run.cells[task]
            close(synthetic_data.estimate(run, "score", task), expected["score"])
            close(synthetic_data.estimate(run, "exact_match", task), expected["exact_match"])
            tokens = synthetic_data.estimate(run, "generated_tokens", task)
            same(tokens and tokens.value, expected["tokens"])
            assert (cell.n, cell.counted) == (expected["n"], expected["counted"])
            assert cell.statuses == expected["statuses"]
            same(cell.compliance, expected["compliance"])
            formats = run.formats.get(task)
            same(formats and formats.lenient, expected["lenient"])


def test_means_over_the_tasks(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    for name, expected in GOLDEN["means"].items():
        close(synthetic_data.estimate(runs[name]), expected)
    # The other runs have fewer tasks than their dataset, and their mean is over these.
    assert all(synthetic_data.estimate(run) is not None for run in runs.values())


def test_differences_of_runs(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    for key, expected in GOLDEN["differences"].items():
        left, right, task = key.split("|")
        known = synthetic_data.difference(runs[left], runs[right], task)
        assert known is not None
        assert known.items == expected["n"]
        close((known.difference, known.low, known.high), expected)


def rows_by_key(data: ReportData, runs: dict[str, Configuration], table: Table) -> dict[str, Any]:
    """Return the cells of a table's rows: `run|task` → field → value."""
    names = {id(run): name for name, run in runs.items()}
    return {
        f"{names[id(data.runs[row.run or 0])]}|{row.task or ALL}": row.cells
        for row in table_rows(table, data)
    }


def test_price_of_reasoning(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    steps = rows_by_key(synthetic_data, runs, comparisons.PRICE)
    for key, expected in GOLDEN["steps"].items():
        first, second, task = key.split("|")
        cells = steps[f"{second}|{task}"]
        assert (cells["from"], cells["to"]) == (runs[first].level, runs[second].level)
        close(cells["points"], expected["points"])
        same(cells["tokens"].value, expected["tokens"])
        same(cells["dollars"] and cells["dollars"].value, expected["dollars"])
        close(cells["tokens_per_point"], expected["tokens_per_point"])


def test_repeated_samples(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    known = rows_by_key(synthetic_data, runs, samples.TABLE)
    assert known.keys() == GOLDEN["samples"].keys()
    for key, expected in GOLDEN["samples"].items():
        assert known[key]["complete"] == expected["complete"]
        same([known[key][f"pass_at_{k}"] for k in (1, 2, 3)], expected["pass_at_k"])


def test_wordings_and_forms(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    known = rows_by_key(synthetic_data, runs, variants.TABLE)
    for section in ("wordings", "forms"):
        for key, expected in GOLDEN[section].items():
            assert known[key]["questions"] == expected["n"]
            close(known[key]["difference"], expected)
            if section == "forms":
                close(known[key]["consistent"], expected["consistency"])
    assert len(known) == sum(len(GOLDEN[name]) for name in ("wordings", "forms"))


def test_horizons_and_memory_tests(synthetic_data: ReportData) -> None:
    (run,) = synthetic_data.horizons
    for task, expected in GOLDEN["horizons"].items():
        same(run.horizons[task].h50, expected["h50"])
        same(run.horizons[task].h90, expected["h90"])
        assert run.horizons[task].items == expected["items"]
    (outcome,) = synthetic_data.memory_tests
    for row in outcome.rows:
        expected = GOLDEN["memory"].get(row.task, GOLDEN["memory"].get(ALL))
        assert row.result
        same([row.frozen, row.fresh], [expected["frozen"], expected["fresh"]])
        close((row.result.difference, row.result.low, row.result.high), expected)


def test_other_computations(synthetic_data: ReportData, runs: dict[str, Configuration]) -> None:
    names = {id(run): name for name, run in runs.items()}
    for index, findings in synthetic_data.findings:
        for count in findings.significant:
            key = f"{names[id(synthetic_data.runs[index])]}|{count.task}|{count.alternative}"
            same([count.matches, count.decidable, count.expected], GOLDEN["matches"][key])


def test_means_over_a_part_of_the_tasks_say_so_and_have_no_other_price_or_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third level has two tasks, so the first step alone is over all."""
    monkeypatch.setattr(comparisons, "MIN_QUESTIONS", 2)
    data, part = made.dataset(tmp_path / "data"), f"All (2 of {len(made.ANSWERS)} tasks)"
    scored = []
    for level, tokens in (("minimal", 10), ("low", 30), ("high", 90)):
        tasks = ("addition", "division") if level == "high" else tuple(made.ANSWERS)
        every = made.all_right(tokens).items()
        answers = {key: one for key, one in every if key.rpartition("-")[0] in tasks}
        if level == "minimal":
            answers["mean-0"] = made.said("mean", 0, '{"answer": 7}', tokens=50)
            answers["std-0"] = made.right("std", 0, tokens=None)
        folder = made.run(tmp_path / level, data, answers, reasoning=level, tasks=tasks)
        scored.append(score_run(folder))
    rows = table_rows(comparisons.PRICE, ReportData(scored))
    price: Any = {(row.cells["to"], row.task): row.cells for row in rows}
    assert (price["low", ""]["task"], price["high", ""]["task"]) == ("All", part)
    # Of one answer to Std, the tokens are unknown; one of four to Mean takes 50 in place of 10.
    assert (price["low", ""]["tokens"], price["low", "std"]["tokens"]) == (None, None)
    same([price[key]["tokens"].value for key in (("low", "mean"), ("high", ""))], [10, 60])
    tool = {"tools": "calculator"}
    runs = scored + [run._replace(info=replace(run.info, settings=tool)) for run in scored]
    low, _, high = (row.cells for row in table_rows(tools.TABLE, ReportData(runs)) if not row.task)
    assert (low["task"], high["task"]) == ("All", part)
    assert low["gain"] and high["gain"] and "reasoning" not in low
    wording = replace(scored[2].info, prompt=PromptRef(name="other", sha256="b"))
    rows = table_rows(variants.TABLE, ReportData([*scored, scored[2]._replace(info=wording)]))
    assert [row.cells["task"] for row in rows if not row.task] == [part]
