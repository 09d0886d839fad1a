"""Every cause of a changed score changes the score of a response with this fault only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

import numbench as nb
from numbench.dataset.store import PublishedLabel, write_dataset, write_published_labels
from numbench.tasks.items import make_item
from studies.rescored.tables import EFFECTS, effects
from tests.report import runs

Case = tuple[str, str, tuple[str, ...], str, str | None]

WRONG_LABEL = ("addition", "+", ("1.5", "2.25"), "3.7499")
CASES: tuple[Case, ...] = (
    (*WRONG_LABEL, '{"answer": 3.75}'),
    # Rounded to 15 digits the answer equals the label; truncated it does not.
    ("addition", "+", ("1234.5", "0.0678901234567"), "1234.56789012346",
     '{"answer": 1234.5678901234567}'),
    # The paper takes the first number, which is not the answer.
    ("addition", "-", ("2", "0.5"), "1.5", '2 - 0.5 = {"answer": 1.5} {}'),
    # There is no response.
    ("addition", "+", ("7", "1"), "8", None),
    ("minmax", "maximum", ("5", "3.5"), "5", '{"answer": 5.0}'),
    ("minmax", "minimum", ("5", "3.5"), "3.5", '{"answer": 3.5}'),
)  # fmt: skip


def changes(folder: Path, cases: Sequence[Case]) -> pd.DataFrame:
    """Return the effects of the causes on exact match by task."""
    items: dict[str, list[nb.Item]] = {}
    labels, responses = [], {}
    for task, operator, operands, label, text in cases:
        item = make_item(task, operator, operands, {})
        items.setdefault(task, []).append(item)
        labels.append(PublishedLabel(item.id, label))
        if text is not None:
            responses[item.id] = nb.Response(item_id=item.id, text=text)
    about = {"name": "d", "generator": "test", "seed": 1, "split": "test", "settings": {}}
    data = write_dataset(folder / "d", items, **about)  # type: ignore[arg-type]
    write_published_labels(data.path, labels)
    run = runs.run(folder / "run", data, responses, tasks=tuple(items))
    wrong = {items["addition"][0].prompt}
    table = effects(nb.score(run), nb.score(run, protocol="paper"), wrong)
    return table[table["metric"] == "exact_match"].set_index("task")


def test_each_cause_has_its_own_effect(tmp_path: Path) -> None:
    table = changes(tmp_path, CASES)
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
    known = changes(tmp_path, [(*WRONG_LABEL, f'{{"answer": {text}}}')]).loc["addition"]
    assert (known["paper_scoring"], known["labels"]) == (before, effect)
    assert known[list(EFFECTS)].sum() == effect
