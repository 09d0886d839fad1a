"""The page "What we found" follows from the committed tables of the studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from studies.findings.__main__ import render

ROOT = Path(__file__).parents[2]


def test_the_committed_page_follows_from_the_committed_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    for name, data in render().items():
        assert Path(name).read_bytes() == data, name


def test_the_readme_has_the_numbers_of_the_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    findings = readme.partition("## What we found")[2].partition("\n## ")[0]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", findings.replace("8%", "Eight percent"))
    assert len(numbers) > 15
    for number in numbers:
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[,.]\d)", page), number
