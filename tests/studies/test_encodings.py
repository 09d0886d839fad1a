"""The page about the nine desiderata, on a tenth of the dataset."""

from pathlib import Path

import pytest

from studies.encodings.__main__ import RESULTS, render

ROOT = Path(__file__).parents[2]


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of a table by the first one."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| D")]
    return {name: cells for name, *cells in lines if len(cells) > 1}


@pytest.mark.slow
def test_a_tenth_of_the_questions_gives_nearly_the_committed_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    files = render(items_per_task=50)
    tenth = rows(files["README.md"].decode())
    committed = rows((RESULTS / "README.md").read_text(encoding="utf-8"))
    assert tenth.keys() == committed.keys() and len(tenth) == 18
    for name, cells in tenth.items():
        if name.startswith(("D2 exact, float64", "D4 range", "D9")):  # not of the dataset
            assert cells == committed[name], name
        else:
            for cell, other in zip(cells, committed[name], strict=True):
                if "no vectors" not in (cell, other) and "to" not in cell:
                    assert float(cell) == pytest.approx(float(other), rel=0.15, abs=2), name
