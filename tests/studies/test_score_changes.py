"""Every cause of a changed score changes the score of a response with this fault only."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import numbench as nb
from numbench.study_import import import_study
from studies.rescored.tables import EFFECTS, effects
from tests.studies.files import ADDITION, small_study, write_benchmark, write_responses


def changes(folder: Path) -> pd.DataFrame:
    """Return the effects of the causes on exact match by task."""
    (run,) = import_study(folder / "csv", folder / "runs", lambda _: None)
    wrong = nb.audit(folder / "csv").wrong
    prompts = {error.label.prompt for errors in wrong.values() for error in errors}
    table = effects(nb.score(run), nb.score(run, protocol="paper"), prompts)
    return table[table["metric"] == "exact_match"].set_index("task")


def test_each_cause_has_its_own_effect(tmp_path: Path) -> None:
    small_study(tmp_path / "csv")
    table = changes(tmp_path)
    assert table["paper_scoring"].to_dict() == {"addition": 0, "minmax": 50}
    assert table.loc["addition", list(EFFECTS)].to_dict() == {
        "labels": 25, "digits": 25, "notation": 0, "parsing": 25, "failed": 25,
    }  # fmt: skip
    assert table.loc["minmax", list(EFFECTS)].to_dict() == {
        "labels": 0, "digits": 0, "notation": 50, "parsing": 0, "failed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "before", "effect"), [(3.75, 0, 100), (3.7499, 100, -100), (4, 0, 0)]
)
def test_a_corrected_label_raises_or_lowers_the_score(
    tmp_path: Path, text: float, before: float, effect: float
) -> None:
    row = ADDITION[0]._replace(text=f'{{"answer": {text}}}')
    write_benchmark(tmp_path / "csv", "Addition", [row])
    write_responses(tmp_path / "csv", "Addition", [row])
    found = changes(tmp_path).loc["addition"]
    assert (found["paper_scoring"], found["labels"]) == (before, effect)
    assert found[list(EFFECTS)].sum() == effect
