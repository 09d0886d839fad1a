"""Token counts of samples, compared with counts by hand."""

from __future__ import annotations

import pytest

from bittoken.desiderata.token_counts import mean_tokens
from bittoken.vocabulary import Vocabulary, tokenize_decimal
from numbench.errors import BadInput
from numbench.records import Answer, Difficulty, Item


def _item(task: str, operator: str, operands: tuple[str, ...], answer: Answer) -> Item:
    return Item(
        id="x", task=task, prompt="", answer=answer, operands=operands, operator=operator,
        difficulty=Difficulty(base10=0, base2=0), params={},
    )  # fmt: skip


# bos 12.5 " - " -1234 eoq | 1246.5 eos
DIFFERENCE = _item("addition", "-", ("12.5", "-1234"), "1246.5")
# bos <|max|> [ -0.25 ", " 3 ", " 10000 ] eoq | 10000 eos
LARGEST = _item("minmax", "maximum", ("-0.25", "3", "10000"), "10000")
# bos <|intva|> 7 [ 1 ", " 22 ] eoq | B eos
INTERVAL = _item("interval", "interval", ("7", "1", "22"), "B")
# bos <|asc|> [ 5 ", " -4 ] eoq | [ -4 ", " 5 ] eos
ORDER = _item("sorting", "ascending", ("5", "-4"), ("-4", "5"))


@pytest.mark.parametrize(
    ("name", "difference", "largest", "interval", "order"),
    [
        ("bittoken", (5, 2), (10, 2), (9, 2), (8, 6)),
        ("xval", (5, 2), (10, 2), (9, 2), (8, 6)),
        ("base10", (5, 2), (10, 2), (9, 2), (8, 6)),
        ("fone", (6, 2), (11, 2), (9, 2), (9, 7)),
        ("fone-log", (6, 2), (11, 2), (9, 2), (9, 7)),
        # 12.5: 1 2 . 5; -1234: - 1 2 3 4; 1246.5: 1 2 4 6 . 5; -0.25: - 0 . 2 5
        ("digit", (12, 7), (18, 6), (10, 2), (9, 7)),
        # 12.5: 12 . 5; -1234: - 123 4; 1246.5: 124 6 . 5; -0.25: - 0 . 25; 10000: 100 00
        ("subword", (9, 5), (14, 3), (9, 2), (9, 7)),
    ],
)
def test_token_counts_match_those_by_hand(
    name: str,
    difference: tuple[int, int],
    largest: tuple[int, int],
    interval: tuple[int, int],
    order: tuple[int, int],
) -> None:
    vocabulary = Vocabulary(name)
    items = (DIFFERENCE, LARGEST, INTERVAL, ORDER)
    counts = [tuple(mean_tokens(item.task, [item], vocabulary)) for item in items]
    assert counts == [difference, largest, interval, order]


def test_digits_are_grouped_from_the_left_before_and_after_the_point() -> None:
    assert tokenize_decimal("-1234567.8901", 3) == ["-", "123", "456", "7", ".", "890", "1"]
    assert tokenize_decimal("-12.3", 1) == ["-", "1", "2", ".", "3"]


def test_tokens_are_means_over_samples() -> None:
    sum_ = _item("addition", "+", ("1", "2"), "3")
    counts = mean_tokens("addition", [DIFFERENCE, sum_], Vocabulary("digit"))
    # bos 1 " + " 2 eoq | 3 eos
    assert counts == ((12 + 5) / 2, (7 + 2) / 2)


def test_unsupported_operators_are_named() -> None:
    item = _item("mean", "median", ("1", "2"), "1.5")
    with pytest.raises(BadInput, match="operator 'median' with 2 operands is not supported"):
        mean_tokens("mean", [item], Vocabulary("bittoken"))
