"""The prompts are those of the paper, verbatim."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from numbench.csv_files import read_csv
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set

BOX = re.compile(r"\\begin\{promptbox\}\[title=(.*?)\](.*?)\\end\{promptbox\}", re.DOTALL)
TITLES = {
    "MinMax system prompt": "minmax",
    "Interval system prompt": "interval",
    "Sorting system prompt": "sorting",
    "Single-step arithmetic system prompt": "addition",
    "Multi-step arithmetic system prompt": "std",
}


def boxes(tex: str) -> dict[str, list[str]]:
    """Return the prompt boxes of the paper's source: title → lines of plain text."""
    boxes = {}
    for title, body in BOX.findall(tex):
        text = re.sub(r"\\texttt\{|\}\s*(?:\\\\)?\s*$", "", body.strip(), flags=re.MULTILINE)
        text = text.replace(r"\_", "_").replace(r"\string^", "^").replace("$", "")
        boxes[title] = [line.strip() for line in re.split(r"\\\\|\n", text) if line.strip()]
    return boxes


@pytest.fixture(scope="module")
def paper(paper_results: Path) -> dict[str, list[str]]:
    source = paper_results.parent / "paper.tex"
    if not source.is_file():
        pytest.skip("needs the paper's LaTeX source as paper.tex beside the study's folder")
    return boxes(source.read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", TITLES)
def test_system_prompts(paper: dict[str, list[str]], title: str) -> None:
    ours = load_prompt_set().system_prompt(TITLES[title]).splitlines()
    # The answer line loses its brace to the end of \texttt{…} in the LaTeX source.
    assert [line.rstrip("}") for line in ours] == [line.rstrip("}") for line in paper[title]]


def test_published_questions_have_the_same_wording(paper_results: Path) -> None:
    files = sorted(paper_results.glob("*_shuffle.csv"))
    assert len(files) == 9
    for file in files:
        for _, row in read_csv(file):
            question = load_prompt_set().parse_question(row["text_prompt"])
            assert load_prompt_set().format_question(*question) == row["text_prompt"]


def test_every_task_has_prompts() -> None:
    for task in PAPER_TASKS.values():
        assert '{"answer": <' in load_prompt_set().system_prompt(task.name)


def test_the_prompt_set_has_the_released_hash() -> None:
    files = sorted(path for path in load_prompt_set().folder.rglob("*") if path.is_file())
    text = b"".join(
        path.relative_to(load_prompt_set().folder).as_posix().encode() + b"\n" + path.read_bytes()
        for path in files
    )
    assert load_prompt_set().ref(PAPER_TASKS).sha256 == hashlib.sha256(text).hexdigest()
    assert load_prompt_set().ref(PAPER_TASKS).sha256[:16] == "9b96901389c4e3c9"
