"""The study of five tasks at once: its sentences, recipes and evaluation."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from bittoken.encodings import ENCODINGS
from studies.multitask.__main__ import Run, at_better_rate, of_kind, read_runs, separation
from studies.multitask.controls import AlignedBits
from studies.multitask.runs import RESULTS
from studies.multitask.train import recipe_of

ROOT = Path(__file__).parents[2]
STORED = ROOT / RESULTS


def test_the_sentences_of_the_pages_hold() -> None:
    runs = read_runs(STORED)
    sums, differences, products = (
        {e: verdict_runs(runs, e, measure) for e in ("bittoken", "fone", "digit")}
        for measure in ("+", "-", "multiplication")
    )
    for of in (sums, differences):
        assert max(of["bittoken"]) < min(of["digit"] + of["fone"])
    assert sorted(value > 50 for value in sums["fone"]) == [False, False, True]
    assert min(products["bittoken"]) > max(products["digit"] + products["fone"])
    (aligned,), (plain,) = of_kind(runs, "aligned"), of_kind(runs, "no-reciprocal")
    assert separation(aligned, plain, "+") == "above"
    text = (ROOT / "docs" / "bittoken.md").read_text(encoding="utf-8")
    bullet = text.partition("- **[Five tasks at once]")[2].partition("\n- **")[0]
    page = (STORED / "README.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?(?=%| questions)", bullet)
    assert len(numbers) >= 8
    assert not [number for number in numbers if number not in page]


def verdict_runs(runs: list[Run], encoding: str, measure: str) -> list[float]:
    return [run.exact(measure) for run in at_better_rate(runs, encoding)]


def test_every_stored_run_has_the_recipe_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODINGS.data, "aligned", AlignedBits())  # type: ignore[attr-defined]
    for run in read_runs(STORED):
        name = f"{run.kind}-{run.seed}"
        stored = json.loads((STORED / "runs" / name / "recipe.json").read_text())
        assert stored == json.loads(msgspec.json.encode(recipe_of(name)))
