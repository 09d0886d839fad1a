"""The documentation refers to files, commands and anchors that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

from numbench.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("docs/*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        ROOT / "datasets" / "README.md",
    ]
)
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

REPOSITORY_PATH = re.compile(
    r"`((?:bench|benchmarks|checkpoints|docs|experiments|prompts|recipes|tests)/[\w./-]+)`"
)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as MkDocs derives them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    slugs = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", slug) for slug in slugs}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_relative_link_leads_to_a_file_and_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match("[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_path_of_the_repository_exists(page: Path) -> None:
    for path in REPOSITORY_PATH.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_python_example_is_valid_python(page: Path) -> None:
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        compile(code, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_exists_with_its_options(page: Path) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    text = page.read_text(encoding="utf-8")
    for command, arguments in re.findall(
        r"(?:^    |\$ |`)numbench ([a-z]+(?:-[a-z]+)*)\b([^`#\n]*)", text, re.M
    ):
        assert command in commands, command
        options = {name for p in commands[command].params for name in (*p.opts, *p.secondary_opts)}
        for option in re.findall(r"(?<!\S)--[a-z-]+", arguments):
            assert option in options | {"--debug", "--help"}, f"{command} {option}"
