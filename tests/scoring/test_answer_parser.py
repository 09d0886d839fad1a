"""The parser of the exact protocol: answers, rules, and texts without an answer."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.scoring.answer_parser import parse_answer
from numbench.scoring.notation import format_number, read_number
from numbench.tasks.base import AnswerKind

NUMBERS = [
    ('{"answer": 5}', 1, "5"),
    (' {"answer": -0.50e3, "note": "done"}\n', 1, "-500"),
    ('{"answer": "1,234.5"}', 1, "1234.5"),
    ('{"answer": "−7"}', 1, "-7"),
    ('{"answer": 5, "answer": 5}', 1, "5"),
    ('{"answer": 1e400}', 1, "1e400"),
    ('```json\n{"answer": 5}\n```', 2, "5"),
    ('First I thought {"answer": 4}, but {"answer": 5} it is', 2, "5"),
    ('{"result": {"answer": 5}}', 2, "5"),
    ('{"steps": [{"a": 1}], "answer": 5} done', 2, "5"),
    (r'\frac{1}{2} gives {"answer": 5}', 2, "5"),
    ('{"answer": 5}}', 2, "5"),
    ('{"answer": -.00007}', 2, "-0.00007"),
    ('{"answer": −5}', 2, "-5"),
    ('{"answer": 1,234,567.5}', 2, "1234567.5"),
    ('{"answer": 1.5 × 10^-7}', 2, "1.5e-7"),
    (r'{"answer": 1.5 \times 10^{-7}}', 2, "1.5e-7"),
    ('{"answer": −5} no, {"answer": −6}', 2, "-6"),
    ('{"answer": −5, "unit": "m"}', 2, "-5"),
    ('{"answer": 12', 3, "12"),
    ('{"answer": "0.5', 3, "0.5"),
    ('{"answer": 0.12' + "0" * 9000, 3, "0.12"),
    ('{"answer": 12.', 3, "12"),
    ('{"answer": 0.12' + "0" * 9000 + "He", 3, "0.12"),
    ('{"answer": 0.12' + "0" * 9000 + ' {"answer":', 3, "0.12"),
    ('{"answer": 12\n\nSo it is twelve', 3, "12"),
    ('{"answer": 12, "unit": 3', 3, "12"),
    ("5", 4, "5"),
    ('"5"', 4, "5"),
    ("```\n-5.0\n```", 4, "-5.0"),
    ("```5```", 4, "5"),
    ("Answer: 5", 4, "5"),
    ("**Answer:** 5", 4, "5"),
    ("**Final answer: 5**", 4, "5"),
    ("The answer is **5**.", 4, "5"),
    ("Answer:\n```\n5\n```", 4, "5"),
    ("1.5 × 10⁻⁷", 4, "1.5e-7"),
    ("1.5*10**-7", 4, "1.5e-7"),
    ("1.5 x 10^(−7)", 4, "1.5e-7"),
    ("1,234", 4, "1234"),
    ("1\u202f234\u202f567", 4, "1234567"),
]

NOT_NUMBERS = [
    "",
    "Token limit reached",
    '{"answer": null}',
    '{"answer": NaN}',
    '{"answer": -Infinity}',
    '{"answer": true}',
    '{"answer": [5]}',
    '{"answer": {"answer": 5}}',
    'so {"answer": {"answer": 5}}',
    '{"answer": "about 5"}',
    '{"answer": 5, "answer": 6}',
    '{"answer": 5} {"answer": null}',
    '{"answer": 5} {"answer": 3/4}',
    '{"answer": 3 + 4 = 7}',
    '{"answer": 0x1F}',
    '{"answer":',
    '{"answer": -',
    '{"answer": 1e',
    '{"answer": 1,',
    '{"answer": 3/4',
    '{"answer": 2pi',
    '{"answer": 5, 6',
    '{"answer": 12\n3',
    '{"answer": 1.5 × 10^',
    '{"answer": 5 {"answer": 6',
    '"answer": 5',
    "00000.00000000000528}",
    "5 6",
    "5 or 6",
    "It is 5",
    "3 + 4 = 7",
    "0,123",
    "1,2345",
    "1,23,456",
    "12.",
    "1/3",
    "5%",
    "B",
    "1e99999999999999999999",
    '{"answer": 1e99999999999999999999}',
]

LETTERS = [
    ('{"answer": "B"}', 1, "B"),
    ('{"answer": "b"}', 1, "B"),
    ('{"answer": B}', 2, "B"),
    ('{"answer": "B"', 3, "B"),
    ("B", 4, "B"),
    ("(b)", 4, "B"),
    ("B:", 4, "B"),
    ("**B.**", 4, "B"),
    ("The correct answer is: **B**", 4, "B"),
]

NOT_LETTERS = ['{"answer": "B', '{"answer": "G"}', '{"answer": ["B"]}', '{"answer": 5}', '"C"}',
               "It is a B", "A or B", "BAD", "G", '{"answer": "B: x < 5"}']  # fmt: skip

LISTS = [
    ('{"answer": [1, 2.50, -3e0]}', 1, ("1", "2.50", "-3")),
    ('{"answer": ["1", "2"]}', 1, ("1", "2")),
    ('{"answer": "1, 2"}', 1, ("1", "2")),
    ('{"answer": [100,200]}', 1, ("100", "200")),
    ('{"answer": [1, .2]}', 2, ("1", "0.2")),
    ('{"answer": [−1, 2]}', 2, ("-1", "2")),
    ('{"answer": [1, 2]', 3, ("1", "2")),
    ("[1, 2]", 4, ("1", "2")),
    ("```json\n[1,\n 2]\n```", 4, ("1", "2")),
    ("1, 2", 4, ("1", "2")),
    ("Answer: [1,2]", 4, ("1", "2")),
    ("100, 200", 4, ("100", "200")),
]

NOT_LISTS = ['{"answer": [1, 2', '{"answer": [1, [2]]}', '{"answer": [1, null]}', '{"answer": []}',
             '{"answer": 5}', '{"answer": "5"}', "5", "[]", "100,200", "1,234, 5,678",
             "[1,234, 5,678]", "[1, 25", "1, 25]", "1 2 3", "1, 2, and 3", "0.5, 0.7]}"]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(("text", "rule", "value"), NUMBERS)
def test_number_is_read_by_its_rule(text: str, rule: int, value: str) -> None:
    assert parse_answer(text, "number") == (Decimal(value), rule)


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_other_text_is_not_a_number(text: str) -> None:
    assert parse_answer(text, "number") is None


@pytest.mark.parametrize(("text", "rule", "value"), LETTERS)
def test_letter_is_read_by_its_rule(text: str, rule: int, value: str) -> None:
    assert parse_answer(text, "letter") == (value, rule)


@pytest.mark.parametrize("text", NOT_LETTERS)
def test_other_text_is_not_a_letter(text: str) -> None:
    assert parse_answer(text, "letter") is None


@pytest.mark.parametrize(("text", "rule", "values"), LISTS)
def test_list_is_read_by_its_rule(text: str, rule: int, values: tuple[str, ...]) -> None:
    assert parse_answer(text, "list") == (tuple(map(Decimal, values)), rule)


@pytest.mark.parametrize("text", NOT_LISTS)
def test_other_text_is_not_a_list(text: str) -> None:
    assert parse_answer(text, "list") is None


finite = st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
    lambda value: abs(value.adjusted()) < 300 and len(value.as_tuple().digits) <= 40
)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _notations(value: Decimal) -> list[str]:
    significand, _, power = f"{value:e}".partition("e")
    exponent = int(power)
    return [
        str(value),
        f"{value:f}",
        f"{value:,f}",
        f"{value:e}".upper(),
        f"{value:f}".replace("-", "−"),
        f"{significand}e{exponent:+}",
        f"{significand} × 10^{exponent}",
        f"{significand}*10**{exponent}",
        f"{significand}·10{str(exponent).translate(_SUPERSCRIPT)}",
        rf"{significand} \times 10^{{{exponent}}}",
        format_number(value),
    ]


@given(finite)
def test_every_notation_of_a_number_has_its_value(value: Decimal) -> None:
    for text in _notations(value):
        assert read_number(text) == value, text


@given(st.integers(0, 10**300), st.integers(-300, 300), st.integers(1, 39))
def test_long_number_rounds_like_its_text(significand: int, exponent: int, digits: int) -> None:
    text = f"{significand}e{exponent}"
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    read = read_number(text)
    assert read is not None
    assert context.plus(read) == context.create_decimal(text)


def test_digit_long_after_a_tie_decides_the_rounding() -> None:
    context = Context(prec=15, rounding=ROUND_HALF_EVEN)
    for tail, rounded in (("0", "1.00000000000002"), ("1", "1.00000000000003")):
        read = read_number("1.000000000000025" + "0" * 100 + tail)
        assert read is not None
        assert context.plus(read) == Decimal(rounded)


@given(st.lists(finite, min_size=1, max_size=5))
def test_json_list_is_read_element_by_element(values: list[Decimal]) -> None:
    parsed = parse_answer(f'{{"answer": [{", ".join(f"{v:f}" for v in values)}]}}', "list")
    assert parsed == (tuple(values), 1)


_PIECES = ['{"answer":', '"answer"', "{", "}", "[", "]", '"', ",", " ", "\n", "```", "5", "0.12",
           "e", "-", "−", "×", "10^", "B", "Answer:", "**", "\\", "null", "\x00"]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES)).map("".join) | st.text(),
       st.sampled_from(["number", "letter", "list"]))  # fmt: skip
def test_any_text_is_parsed_to_the_kind_or_to_nothing(text: str, kind: AnswerKind) -> None:
    parsed = parse_answer(text, kind)
    if parsed is not None:
        value_type = {"number": Decimal, "letter": str, "list": tuple}[kind]
        assert isinstance(parsed.value, value_type)
        assert parsed.rule in (1, 2, 3, 4)


@given(finite, finite)
def test_two_bare_numbers_are_never_an_answer(one: Decimal, other: Decimal) -> None:
    for text in (f"{one:f} {other:f}", f"{one:f} or {other:f}", f"It is {one:f}, not {other:f}."):
        assert parse_answer(text, "number") is None


_LENGTH = 300_000
HOSTILE = [
    '{"answer": 0.' + "0" * _LENGTH,
    '{"answer": ' + "1" * _LENGTH + "}",
    '{"answer": 1e' + "9" * _LENGTH + "}",
    "1" * _LENGTH,
    "1," + "000," * (_LENGTH // 4),
    '{"answer":' * (_LENGTH // 10),
    '{"answer": 5}' * (_LENGTH // 13),
    '{"answer": ' + "[" * _LENGTH + "}",
    '{"a":' * (_LENGTH // 5) + '"answer": 5',
    '{"k":' * 32 + "[" + "1," * (_LENGTH // 2) + '"answer": ' * 40,
    "**answer" + " " * _LENGTH + "x",
    "the " * (_LENGTH // 4),
    '{"answer" ' + " " * _LENGTH + "5",
    ',"' * (_LENGTH // 2) + '{"answer": 5' + ',"a' * (_LENGTH // 3) + "}",
    '{"answer": [' + "1," * (_LENGTH // 2) + "]}",
    "{" + " " * _LENGTH + '"answer": 5}',
    '{"answer": 5' + " " * _LENGTH,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_hostile_text_is_parsed_in_linear_time(text: str) -> None:
    """Quadratic effort would take many minutes and hit the watchdog."""
    for kind in ("number", "letter", "list"):
        parse_answer(text, kind)
