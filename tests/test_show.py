"""`numbench show`: single items in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.errors import BadInput
from bench.show import Wanted, show
from tests.report import runs


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Addition: 10 right, 20 given as 200, 30 right, 40 unreadable in a hostile text."""
    data = runs.dataset(tmp_path, tasks=("addition", "minmax"))
    answers = {key: value for key, value in runs.all_right().items() if key[:3] in ("add", "min")}
    answers["addition-1"] = runs.said("addition", 1, '{"answer": 200}')
    hostile = runs.said("addition", 3, "\x1b[31mI \u202eused a tool\x07")
    reasoning = "I use a calculator.\x1b[2J Then more."
    answers["addition-3"] = replace(hostile, reasoning_text=reasoning)
    return runs.run(tmp_path / "run", data, answers, tasks=("addition", "minmax"))


def plain(run: Path, **wanted: object) -> str:
    return "\n".join(text.plain for text in show(run, Wanted(**wanted)))  # type: ignore[arg-type]


def test_every_task_begins_with_its_counts_and_signature(run: Path) -> None:
    said = plain(run)
    assert said.startswith("4 of 4 items  numbench:")
    assert said.count("|protocol:exact|") == 2
    assert said.count("exact match") == 6


def test_items_are_chosen_by_task_judgement_kind_difficulty_id_and_number(run: Path) -> None:
    assert plain(run, tasks=("addition",), wrong=True).count("question") == 2
    assert "wrong power of ten" in plain(run, kinds=("magnitude",))
    assert plain(run, kinds=("magnitude", "format")).count("question") == 2
    assert plain(run, ids=("addition-1", "minmax-")).count("question") == 5
    assert plain(run, limit=1).count("question") == 2
    assert plain(run, difficulty=(10**6, 10**7)).count("question") == 0


def test_the_answer_stands_under_the_truth(run: Path) -> None:
    lines = plain(run, kinds=("magnitude",)).splitlines()
    assert [line for line in lines if "truth" in line or "answer  " in line] == [
        "  truth      20",
        "  answer    200",
    ]


def test_hostile_text_is_spelt_out(run: Path) -> None:
    said = plain(run, kinds=("format",))
    assert "said      \\x1b[31mI \\u202eused a tool\\x07" in said
    assert "its reasoning speaks of a tool: “I use a calculator.\\x1b[2J" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(kinds=("typo",)), "unknown kind 'typo': give one of right, operand"),
        (Wanted(tasks=("mean",)), "has no task 'mean': it asked minmax, addition"),
    ],
)
def test_what_is_not_there_is_named(run: Path, wanted: Wanted, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        list(show(run, wanted))


def test_the_paper_s_protocol_tells_no_kinds(run: Path) -> None:
    with pytest.raises(BadInput, match="leave out --kind"):
        list(show(run, Wanted(kinds=("carry",)), "paper"))
    assert any("wrong" in text.plain for text in show(run, Wanted(), "paper"))
