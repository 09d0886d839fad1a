"""`docs/report.md` documents exactly the fields and columns that a report writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from numbench.reporting import reasoning_budgets, rendering, report
from tests.reporting import horizons, runs

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def documented(after: str) -> dict[str, str]:
    """Return name → type from the first table after the line that starts with `after`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(after))
    fields: dict[str, str] = {}
    for line in lines[start + 1 :]:
        if not line.startswith("|") and fields:
            break
        names, kind = ([cell.strip() for cell in line.split("|")] + ["", "", ""])[1:3]
        fields |= dict.fromkeys(re.findall("`([^`]+)`", names), kind)
    return fields


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of a run with every kind of cell, and one of two runs, without figures."""
    folder = tmp_path_factory.mktemp("documented")
    data = runs.dataset(folder / "pair")
    for name, tokens in (("one", 5), ("two", 6)):
        runs.run(folder / "pair" / name, data, runs.all_right(tokens=tokens))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "all_figures", list)
        report([runs.mixed_run(folder)], published=False, out=folder / "out")
        report([folder / "pair"], published=False, out=folder / "out-pair")
        measured = horizons.write_measurement(folder / "measured", {"copy": 8.0})
        report([measured], out=folder / "out-horizons")
    return folder / "out"


def test_every_field_of_report_json_is_documented(written: Path) -> None:
    summary = json.loads((written / "report.json").read_text())
    run = summary["runs"][0]
    number, comparison = run["tasks"]["addition"], run["tasks"]["minmax"]
    assert documented("## `report.json`").keys() == summary.keys()
    assert documented("A run, ").keys() == run.keys()
    assert documented("A task of a run, ").keys() == run["tasks"]["std"].keys()
    assert run["tasks"]["std"].keys() - number.keys() == {"either_convention"}
    assert number.keys() - comparison.keys() == {"exact_match"}
    for estimate in ("log_smape", "exact_match", "tokens"):
        assert documented("An estimate").keys() == number[estimate].keys()


def test_every_field_of_the_comparisons_is_documented(written: Path) -> None:
    summary = json.loads((written.parent / "out-pair" / "report.json").read_text())
    comparisons = summary["comparisons"]
    assert documented("The comparisons, ").keys() == comparisons.keys()
    assert documented("A pair on one task, ").keys() == comparisons["pairs"][0].keys()


def test_every_field_of_the_reasoning_levels_is_documented(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path, tasks=("addition",))
    for level, tokens in (("low", 5), ("high", 6)):
        runs.run(
            tmp_path / level,
            data,
            runs.all_right(tokens=tokens),
            tasks=("addition",),
            reasoning=level,
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "all_figures", list)
        patch.setattr(reasoning_budgets, "MIN_ITEMS", 1)
        report([tmp_path], published=False, out=tmp_path / "out")
    budgets = json.loads((tmp_path / "out" / "report.json").read_text())["reasoning_budgets"]
    assert documented("The reasoning levels, ").keys() == budgets.keys()
    (group,) = budgets["groups"]
    assert documented("A task of a group, ").keys() == group["tasks"]["addition"].keys()
    (step,) = group["steps"]
    assert documented("A step of a group, ").keys() == step.keys()


def test_every_field_of_the_wrong_answers_is_documented(written: Path) -> None:
    (matched,) = json.loads((written / "report.json").read_text())["other_computations"]
    assert documented("The wrong answers of a run, ").keys() == matched.keys()


def test_every_field_of_the_horizons_is_documented(written: Path) -> None:
    summary = json.loads((written.parent / "out-horizons" / "report.json").read_text())
    (measured,) = summary["horizons"]
    assert documented("A horizon measurement, ").keys() == measured.keys()
    task = measured["tasks"]["copy"]
    assert documented("A task of a horizon measurement, ").keys() == task.keys()
    assert task["sizes"][0].keys() == {"size", "items", "right", "truncated", "tokens"}
    assert documented("A size, such as").keys() == task["h50"].keys()


def test_report_json_has_the_documented_types(written: Path) -> None:
    kinds = {
        "int": int,
        "float": float,
        "float or null": (float, type(None)),
        "string": str,
        "string or null": (str, type(None)),
        "bool": bool,
        "object": dict,
        "estimate": dict,
        "list of strings": list,
        "list of objects": list,
    }
    summary = json.loads((written / "report.json").read_text())
    run = summary["runs"][0]
    task = run["tasks"]["std"]
    parts = {
        "## `report.json`": summary,
        "A run, ": run,
        "A task of a run, ": task,
        "An estimate": task["log_smape"],
    }
    for heading, values in parts.items():
        for name, kind in documented(heading).items():
            assert isinstance(values[name], kinds[kind]), name


def test_an_estimate_that_cannot_be_formed_is_absent(written: Path) -> None:
    run = json.loads((written / "report.json").read_text())["runs"][0]
    assert "tokens" not in run["tasks"]["division"]


def test_every_column_of_scores_parquet_is_documented_with_its_type(written: Path) -> None:
    schema = pq.read_schema(written / "scores.parquet")
    assert documented("## `scores.parquet`") == {field.name: str(field.type) for field in schema}
