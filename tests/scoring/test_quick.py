"""The quick way to a score gives, field by field, what the definition gives."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.dataset.store import open_dataset
from bench.records import Item, Response
from bench.scoring import score_exact, score_run
from bench.scoring.exact import define_score
from bench.scoring.quick import quick_score
from bench.study import import_study
from bench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answered, said

NEAR = make_item("minmax", "maximum", ("563687326.3220608", "563687326.3220606"), {})
ZERO = make_item("addition", "-", ("1.5", "1.5"), {})
NEGATIVE = make_item("addition", "-", ("2.5", "1234.0625"), {})
TINY = make_item("multiplication", "*", ("0.0000000123", "0.0000000456"), {})
HUGE = make_item("multiplication", "*", ("123456789012345", "987654321098765"), {})
ROUND = make_item("addition", "+", ("999.5", "0.5"), {})
TIE = make_item("addition", "+", ("100000000000000", "0.2"), {})
ITEMS = [SUM, SEVENTH, LETTER, ORDER, LARGEST, NEAR, ZERO, NEGATIVE, TINY, HUGE, ROUND, TIE]


def _same(item: Item, response: Response) -> None:
    assert score_exact(item, response) == define_score(item, response)


SPECIAL = [
    "0", "-0", "-0.0", "0e5", "007", "+5", ".5", "5.", "1e999999999", "-1E-5", "null", '"5"',
    "3.750", "3.7500000000000000000000000000000000000000000007",
    "100000000000000.5", "100000000000001.5", "100000000000000.500000001", "99999999999999.95",
    "999999999999999.5", "999.9999999999996", "9.999999999999996e2", "99999999999999994e-20",
    "1e39", "1e40", "1e41", "1e-40", "1e-41", "1e80", "1e-80",
    "12345678901234567890123456789012345678901", "0.000000000000000000000000000000000000000012345",
]  # fmt: skip

_blanks = st.text(st.sampled_from(" \t\n\r\u00a0\x1c"), max_size=2)
_literals = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**45), 10**45).map(str),
    st.sampled_from(SPECIAL),
    st.from_regex(r"-?[0-9]{0,45}\.?[0-9]{0,65}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)


def _misprint(value: str) -> st.SearchStrategy[str]:
    """The value with a few characters changed, added or left out."""
    edits = st.tuples(st.integers(0, len(value)), st.integers(0, 1), st.sampled_from("0123459.-e"))
    return st.lists(edits, max_size=3).map(lambda changes: _edited(value, changes))


def _edited(value: str, changes: list[tuple[int, int, str]]) -> str:
    for at, length, new in changes:
        value = value[:at] + new + value[at + length :]
    return value


def _values(item: Item) -> st.SearchStrategy[str]:
    """Values of an answer object: near the truth, of its kind, and of others."""
    if item is LETTER:
        return st.sampled_from(['"A"', '"b"', '"B"', '" B"', '"G"', "B", '"C."', "5"])
    if item is ORDER:
        elements = st.sampled_from(["-1", "-1.0", "2.5", "3", "25e-1", '"3"', "03", "", "4"])
        return st.lists(elements, max_size=5).map(lambda parts: f"[{', '.join(parts)}]")
    return st.one_of(_literals, _misprint(str(item.answer)), _misprint(f"{Decimal(item.answer):e}"))


@st.composite
def _said(draw: Callable[[st.SearchStrategy[str]], str], item: Item) -> str:
    one, two, three, four, five = (draw(_blanks) for _ in range(5))
    return f'{one}{{{two}"answer"{three}:{three}{draw(_values(item))}{four}}}{five}'


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.task} {item.answer}"[:40])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_quick_score_is_the_defined_score(item: Item, data: st.DataObject) -> None:
    _same(item, said(item, data.draw(_said(item))))


@pytest.mark.parametrize("value", SPECIAL)
def test_a_special_number_is_scored_alike(value: str) -> None:
    for item in ITEMS:
        _same(item, answered(item, value))
        _same(item, answered(item, f"[{value}]"))


@pytest.mark.parametrize("answer", [*SPECIAL[:4], "3.750", "5e0", "1e45", "0.5000"])
def test_a_truth_in_unusual_notation_is_scored_alike(answer: str) -> None:
    """Datasets of others need not write numbers as this package does."""
    number = msgspec.structs.replace(SUM, answer=answer)
    numbers = msgspec.structs.replace(ORDER, answer=(answer, "1"))
    _same(number, answered(number, answer))
    _same(numbers, answered(numbers, f"[{answer}, 1]"))


@given(st.text(), st.sampled_from(ITEMS))
@example('{"answer": [', ORDER)
@example('{"answer": []}', ORDER)
@example("{}", SUM)
def test_any_text_is_scored_alike(text: str, item: Item) -> None:
    _same(item, said(item, text))


@given(
    st.integers(10**14, 10**15 - 1),
    st.integers(10**14, 10**15 - 1) | st.integers(-3, 3),
    st.integers(-20, 20),
    st.integers(-20, 20),
)
def test_numbers_of_any_distance_are_scored_alike(
    truth: int, answer: int, place: int, other: int
) -> None:
    """`answer` is a number of its own, or a distance in the last digit."""
    if abs(answer) <= 3:
        answer, other = truth + answer, place
    item = make_item("multiplication", "*", (f"{Decimal(truth).scaleb(place):f}", "1"), {})
    _same(item, answered(item, f"{Decimal(answer).scaleb(other):f}"))
    _same(item, answered(item, f"{Decimal(-answer).scaleb(other):e}".replace("+", "")))


@pytest.mark.parametrize("text", ['{"answer": 3.75}', ' {\n"answer":3.750e0 }\n', '{"answer": -4}'])
def test_a_plain_answer_goes_the_quick_way(text: str) -> None:
    assert quick_score(SUM, text) is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 1e999999999}',
        '{"answer": ' + "0" * 10**6 + "}",
        '{"answer": 0.' + "0" * 10**6 + "}",
        '{"answer": ' + "7" * 10**6 + "}",
        '{"answer": ' + "[" * 10**6 + "}",
        '{"answer": [' + "1," * 10**5 + "]}",
        "{" + " " * 10**6 + '"answer": 5}',
        '{"answer": 5' + " " * 10**6,
    ],
    ids=lambda text: text[:20],
)
def test_a_hostile_text_is_scored_alike(text: str) -> None:
    for item in (SUM, LETTER, ORDER):
        _same(item, said(item, text))


def test_every_task_of_the_benchmark_is_scored_alike() -> None:
    """Its truths, and what a hasty copyist makes of them."""
    for items in open_dataset("v1").by_task.values():
        for item in items[:60]:
            written = item.answer if isinstance(item.answer, str) else ", ".join(item.answer)
            spoilt = (
                written,
                written[:-1],
                written + "5",
                f"-{written}",
                written.replace("1", "7"),
            )
            for value in spoilt:
                for form in (value, f'"{value}"', f"[{value}]"):
                    _same(item, answered(item, form))


def test_every_response_of_the_study_is_scored_alike(paper_results: Path, tmp_path: Path) -> None:
    for folder in import_study(paper_results, tmp_path, lambda _: None):
        for rows in score_run(folder).rows.values():
            for item, response, score in rows:
                assert response is None or score == define_score(item, response)
