"""The parser of the exact protocol: answers, rules, and texts without an answer."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.scoring.answer_parser import (
    MAX_CHARACTERS,
    ends_inside_object,
    parse_answer,
    parse_requested_format,
)
from numbench.scoring.notation import format_number, read_number
from numbench.tasks.base import AnswerKind

NUMBERS = [
    ('{"answer": 5}', 1, "5"),
    (' {"answer": -0.50e3, "note": "done"}\n', 1, "-500"),
    ('{"answer": "1,234.5"}', 1, "1234.5"),
    ('{"answer": "−7"}', 1, "-7"),
    ('{"answer": 5, "answer": 5}', 1, "5"),
    ('{"answer": 1e400}', 1, "1e400"),
    ('{"answer": 9.9e999999}', 1, "9.9e999999"),
    ('{"answer": -1e-999999}', 1, "-1e-999999"),
    ('{"answer": 0e999999999}', 1, "0"),
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
    ('{"answer": −5, "note": "done"}', 2, "-5"),
    ('{"answer": 5}\n\nQuestion: What is 3 + 4?\n{"answer": 7}', 2, "5"),
    ('{"answer": 5}\n**User**: What is 3 + 4?\n{"answer": 7}', 2, "5"),
    ('{"answer": 5}<|im_end|>\n<|im_start|>user\n{"answer": 7}', 2, "5"),
    ('{"answer": 5}</s>{"answer": 7}', 2, "5"),
    ('Question: What is 3 + 4?\n{"answer": 7}', 2, "7"),
    ('Not 4 but {"answer": 5}.', 2, "5"),
    ('"answer": 5}', 2, "5"),
    ('Sum: "answer": "5", "note": "done"}', 2, "5"),
    ('{"answer": 5} {"answer":', 2, "5"),
    ('{"answer": 5} {"answer": 5', 2, "5"),
    ('{"answer": 5.5} {"answer": 5.', 2, "5.5"),
    ('{"answer": "0.5"', 3, "0.5"),
    ('"answer": "0.5"', 3, "0.5"),
    ('{"answer": 12\n', 3, "12"),
    ('{"answer": 12</s>', 3, "12"),
    ('{"answer": 0.12' + "0" * 64, 3, "0.12"),
    ('{"answer": 0.12' + "0" * 9000, 3, "0.12"),
    ('{"answer": "0.12' + "0" * 9000, 3, "0.12"),
    ('{"answer": 7.' + "0" * 9000, 3, "7"),
    ('{"answer": 0.' + "0" * 9000, 3, "0"),
    ('{"answer": 0.12' + "0" * 9000 + "He", 3, "0.12"),
    ('{"answer": 0.12' + "0" * 9000 + ' {"answer":', 3, "0.12"),
    ('{"answer": 12\n\nSo that is it', 3, "12"),
    ('{"answer": 12, "note": "exact', 3, "12"),
    ("5", 4, "5"),
    ('"5"}', 4, "5"),
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
    '{"answer": −5, "unit": "m"}',
    '"answer": "5", "unit": "m"}',
    '{"answer": 12, "unit": 3',
    '{"answer": 5}\nThe "answer": key has the sum 6',
    '"answer": 5',
    'Write it as, for example, {"answer": 5}',
    'It is {"answer": 6}, not {"answer": 5}',
    'A number such as {"answer": 5} is expected',
    '{"answer": 5} Wait, the carry is missing.',
    '{"answer": 5}\n\nActually, it is 6.',
    '{"answer": 5} is wrong.',
    '{"answer": 208867',
    '{"answer": 12.',
    '{"answer": 12 ',
    '{"answer": "12',
    '{"answer": 1.5e-7',
    '{"answer": 0.12' + "0" * 63,
    '{"answer": 0.12' + "8" * 9000,
    '{"answer": 12' + "0" * 9000,
    '{"answer": 0.12' + "0" * 9000 + "e5",
    '{"answer": 0.12' + "0" * 9000 + " × 10",
    '{"answer": 5} {"answer": 6',
    '{"answer": 5} {"answer": 5.25',
    '{"answer": 5,} {"answer": 6',
    "0.839215600945800}",
    "5}",
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
    "1e1000000",
    '{"answer": 1e-1000000}',
    '{"answer": 9.99999999999999999e999999999999999999}',
    '{"answer": 1e-999999999999999999}',
    '{"answer": 1' + "0" * 999_988 + "e13}",
]

LETTERS = [
    ('{"answer": "B"}', 1, "B"),
    ('{"answer": "b"}', 1, "B"),
    ('{"answer": "Z"}', 1, "Z"),
    ('{"answer": B}', 2, "B"),
    ('{"answer": "B"', 3, "B"),
    ('"answer": "B"}', 2, "B"),
    ('"C"}', 4, "C"),
    ("B", 4, "B"),
    ("(b)", 4, "B"),
    ("B:", 4, "B"),
    ("**B.**", 4, "B"),
    ("The correct answer is: **B**", 4, "B"),
]

NOT_LETTERS = ['{"answer": "B', '{"answer": "É"}', '{"answer": ["B"]}', '{"answer": 5}', "C}",
               "It is a B", "A or B", "BAD", "É", '{"answer": "B: x < 5"}']  # fmt: skip

LISTS = [
    ('{"answer": [1, 2.50, -3e0]}', 1, ("1", "2.50", "-3")),
    ('{"answer": ["1", "2"]}', 1, ("1", "2")),
    ('{"answer": "1, 2"}', 1, ("1", "2")),
    ('{"answer": [100,200]}', 1, ("100", "200")),
    ('{"answer": [1, .2]}', 2, ("1", "0.2")),
    ('{"answer": [−1, 2]}', 2, ("-1", "2")),
    ('{"answer": [1, 2]', 3, ("1", "2")),
    ('{"answer": [1., 2]}', 2, ("1", "2")),
    ('{"answer": []}', 1, ()),
    ('{"answer": [ ]', 3, ()),
    ("[]", 4, ()),
    ("[1, 2]}", 4, ("1", "2")),
    ("0.5,0.25, 3", 4, ("0.5", "0.25", "3")),
    ("0,5", 4, ("0", "5")),
    ("[1, 2]", 4, ("1", "2")),
    ("```json\n[1,\n 2]\n```", 4, ("1", "2")),
    ("1, 2", 4, ("1", "2")),
    ("Answer: [1,2]", 4, ("1", "2")),
    ("100, 200", 4, ("100", "200")),
]

NOT_LISTS = ['{"answer": [1, 2', '{"answer": [1, [2]]}', '{"answer": [1, null]}',
             '{"answer": "0,5, 0,25"}', "0,5, 0,25", "[0,5, 0,25]", '{"answer": [0,5, .25]}',
             "97343, 0.00017]}",
             '{"answer": "[1, 2], [3]"}', "[" + "1," * 10_000 + "1]",
             '{"answer": [' + "1," * 10_000 + "1]}",
             '{"answer": 5}', '{"answer": "5"}', "5", "100,200", "1,234, 5,678",
             "[1,234, 5,678]", "[1, 25", "1, 25]", "1 2 3", "1, 2, and 3", "0.5, 0.7]}"]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(("text", "rule", "value"), NUMBERS, ids=lambda value: str(value)[:40])
def test_number_is_read_by_its_rule(text: str, rule: int, value: str) -> None:
    assert parse_answer(text, "number") == (Decimal(value), rule)


@pytest.mark.parametrize("text", NOT_NUMBERS, ids=lambda text: text[:40])
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


@pytest.mark.parametrize("text", NOT_LISTS, ids=lambda text: text[:40])
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


_WHITESPACE = st.text(" \t\r\n\x0b\xa0", max_size=2)
_LITERALS = (
    finite.map(str)
    | finite.map("{:f}".format)
    | st.from_regex(r"-?[0-9]{1,3}(\.[0-9]{0,3})?([eE][+-]?[0-9]{1,10})?", fullmatch=True)
    | st.sampled_from(['"B"', '"F"', '"G"', '"b"', '"5"', "B", "[1, 2]", "null", ".5", "5.", "-"])
)


@given(st.tuples(*[_WHITESPACE] * 5), _LITERALS, st.sampled_from(["number", "letter", "list"]))
def test_commonest_form_is_parsed_as_by_the_rules(
    spaces: tuple[str, ...], literal: str, kind: AnswerKind
) -> None:
    before, inner, colon, value, after = spaces
    for text in (
        f'{{"answer": {literal}}}',
        f'{before}{{{inner}"answer"{colon}:{value}{literal}{after}}}',
    ):
        parsed = parse_requested_format(text, kind)
        assert parsed is None or parsed == parse_answer(text, kind, is_cut_off=True)


@pytest.mark.parametrize("kind", ["number", "letter", "list"])
@pytest.mark.parametrize(
    "literal", ['"b"', '"B"', '"G"', "007", "+5", ".5", "5.", "1e5", "-0", "B"]
)
def test_no_other_form_is_taken_for_the_commonest(literal: str, kind: AnswerKind) -> None:
    text = f'{{"answer": {literal}}}'
    parsed = parse_requested_format(text, kind)
    assert parsed is None or parsed == parse_answer(text, kind)


@pytest.mark.parametrize(
    ("text", "kind"), [('{"answer": -1.5e3}', "number"), ('{"answer":"C"}', "letter")]
)
def test_commonest_form_is_parsed_at_once(text: str, kind: AnswerKind) -> None:
    assert parse_requested_format(text, kind) is not None


@given(finite, finite)
def test_two_bare_numbers_are_never_an_answer(one: Decimal, other: Decimal) -> None:
    for text in (f"{one:f} {other:f}", f"{one:f} or {other:f}", f"It is {one:f}, not {other:f}."):
        assert parse_answer(text, "number") is None


@pytest.mark.parametrize(("text", "kind"), [("5", "number"), ("12.", "number"), ("B", "letter"),
                                            ("1, 2", "list"), ("```\n5", "number")])  # fmt: skip
def test_value_at_the_token_limit_may_go_on(text: str, kind: AnswerKind) -> None:
    assert parse_answer(text, kind, is_cut_off=True) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [("**5**", "number"), ("```\n5\n```", "number"), ('"B"', "letter"), ("[1, 2]", "list"),
     ('{"answer": 5} and', "number"), ('{"answer": 5}', "number")],
)  # fmt: skip
def test_value_that_has_ended_counts_at_the_token_limit(text: str, kind: AnswerKind) -> None:
    assert parse_answer(text, kind, is_cut_off=True) == parse_answer(text, kind) is not None


def test_only_the_end_of_a_very_long_text_is_read() -> None:
    answer = '{"answer": 5}'
    assert parse_answer("x " * MAX_CHARACTERS + answer, "number") == (Decimal(5), 2)
    assert parse_answer(answer + "x" * MAX_CHARACTERS, "number") is None
    # The rest of a number, or of a list, is not the answer.
    assert parse_answer("1" * (MAX_CHARACTERS + 1), "number") is None
    assert parse_answer("1, " * MAX_CHARACTERS + "1", "list") is None
    assert parse_answer('{"answer": 1' + "0" * MAX_CHARACTERS + "}", "number") is None


@pytest.mark.parametrize(
    ("text", "is_inside"),
    [
        ('{"', True),
        ('{"answer":', True),
        ('{"answer": 208867', True),
        ('{"a": 1} {', True),
        ('{"answer": [1, 2', True),
        ('{"answer": 5}', False),
        ("", False),
        ("208867", False),
        ("a set {1, 2", False),
    ],
)
def test_text_ends_inside_an_object_that_has_begun(text: str, is_inside: bool) -> None:
    assert ends_inside_object(text) is is_inside


@given(finite.map("{:f}".format), st.integers(0, 60))
def test_no_prefix_of_an_answer_is_read_as_another_number(number: str, length: int) -> None:
    for text in (
        f'{{"answer": {number}}}',
        f'{{"answer": "{number}"}}',
        f'{{"answer":{number}\n}}',
    ):
        parsed = parse_answer(text[:length], "number")
        assert parsed is None or parsed.value == Decimal(number)
