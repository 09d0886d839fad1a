"""The measurements in docs/encodings.md are those of `bittoken encodings`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bittoken.desiderata.report import measure_encodings

pytestmark = pytest.mark.heavy
DOCS = Path(__file__).parents[2] / "docs"


def test_table_and_figure_of_the_page_are_current(tmp_path: Path) -> None:
    measure_encodings(tmp_path)
    table = (tmp_path / "encodings.md").read_text(encoding="utf-8").split("\n\n")[2]
    assert table in (DOCS / "encodings.md").read_text(encoding="utf-8")
    figure = (tmp_path / "encodings.svg").read_bytes()
    assert figure == (DOCS / "assets" / "encodings.svg").read_bytes()
