"""`numbench show`: items of a run as text."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from numbench.errors import BadInput
from numbench.item_view import ItemFilter, item_texts, select_items
from tests.report import runs


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Addition: 10 correct, 200 instead of 20, no answer, and a text without a number."""
    data = runs.dataset(tmp_path, tasks=("addition", "minmax"))
    answers = {key: value for key, value in runs.all_right().items() if key[:3] in ("add", "min")}
    answers["addition-2"] = runs.failed("addition", 2)
    answers["addition-1"] = runs.said("addition", 1, '{"answer": 200}')
    hostile = runs.said("addition", 3, "\x1b[31mI \u202eused a tool\x07")
    answers["addition-3"] = replace(hostile, reasoning_text="I use a calculator.\x1b[2J More.")
    return runs.run(tmp_path / "run", data, answers, tasks=("addition", "minmax"))


def plain(run: Path, **item_filter: object) -> str:
    return "\n".join(
        text.plain for text in item_texts(select_items(run, ItemFilter(**item_filter)))
    )  # type: ignore[arg-type]


def test_each_task_starts_with_name_counts_and_signature(run: Path) -> None:
    output = plain(run)
    assert output.startswith("MinMax: 4 of 4 questions\n  numbench:")
    assert "\nAdd: 4 of 4 questions\n  numbench:" in output
    assert output.count("|protocol:exact|") == 2
    assert output.count("exact match") == 5


def test_items_are_filtered_and_answers_aligned_with_the_truth(run: Path) -> None:
    assert plain(run, tasks=("addition",), wrong=True).count("  question  ") == 2
    assert plain(run, kinds=("magnitude", "format")).count("  question  ") == 2
    assert plain(run, ids=("addition-1", "minmax-")).count("  question  ") == 5
    assert plain(run, limit=1).count("  question  ") == 2
    assert plain(run, difficulty=(10**6, 10**7)).count("  question  ") == 0
    assert plain(run, ids=("nothing",)) == "0 of 8 questions: none matches the options"
    magnitude = plain(run, kinds=("magnitude",))
    assert "wrong power of ten" in magnitude and "MinMax" not in magnitude
    lines = [line for line in magnitude.splitlines() if "truth" in line or "answer  " in line]
    assert lines == ["  truth      20", "  answer    200"]
    output = plain(run, kinds=("format",))
    assert "response  \\x1b[31mI \\u202eused a tool\\x07" in output and "\x1b" not in output


def test_unknown_tasks_and_kinds_are_reported(run: Path) -> None:
    for item_filter, protocol, message in (
        (ItemFilter(kinds=("typo",)), "exact", "unknown kind 'typo': use right, operand"),
        (ItemFilter(tasks=("mean",)), "exact", "has no task 'mean': it has minmax, addition"),
        (ItemFilter(kinds=("carry",)), "paper", "omit --kind"),
    ):
        with pytest.raises(BadInput, match=message):
            list(select_items(run, item_filter, protocol))  # type: ignore[arg-type]
    assert any(
        "wrong" in text.plain for text in item_texts(select_items(run, ItemFilter(), "paper"))
    )
