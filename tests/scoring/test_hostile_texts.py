"""Hostile texts: nothing raises under any protocol, and the values are within bounds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Item, Response, Score
from numbench.scoring import categorize, score_exact, score_lenient, score_paper
from numbench.tasks.items import make_item
from tests.scoring.hostile_texts import hostile_texts, long_texts, short_texts
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, text_response

ITEMS = [SUM, SEVENTH, LARGEST, LETTER, ORDER, make_item("exponentiation", "^", ("2", "-40"), {})]
PROTOCOLS = (score_exact, score_lenient, score_paper)


def check(item: Item, response: Response) -> None:
    for score_response in PROTOCOLS:
        score = score_response(item, response)
        assert score.exact_match <= (score.status == "ok")
        if score.log_smape is not None:
            assert 0 <= score.log_smape <= 1
        assert msgspec.json.decode(msgspec.json.encode(score), type=Score) == score
        if score.protocol != "paper":
            assert categorize(score)
            parsed = score.parsed if isinstance(score.parsed, str) else " ".join(score.parsed or ())
            assert len(parsed) <= 60 * (1 + parsed.count(" "))


@pytest.mark.parametrize("number", range(len(ITEMS)), ids=lambda number: ITEMS[number].task)
def test_no_short_hostile_text_raises(number: int) -> None:
    """Each text is read as the answer to two of the six items."""
    item = ITEMS[number]
    for text in short_texts()[number % 3 :: 3]:
        check(item, text_response(item, text))


@pytest.mark.parametrize("text", long_texts(), ids=lambda text: ascii(text[:24]))
def test_no_long_hostile_text_raises(text: str) -> None:
    """Quadratic effort would take minutes."""
    for item in (SUM, LETTER, ORDER):
        # It reads all that `exact` reads, and more.
        score_lenient(item, text_response(item, text))


@given(hostile_texts, st.sampled_from(ITEMS), st.sampled_from([None, "stop", "length", "other"]))
def test_no_random_hostile_text_raises(text: str, item: Item, reason: str | None) -> None:
    check(item, Response(item_id=item.id, text=text, finish_reason=reason))  # type: ignore[arg-type]


@given(hostile_texts, st.sampled_from(ITEMS))
def test_lenient_only_adds_readings(text: str, item: Item) -> None:
    exact = score_exact(item, text_response(item, text))
    lenient = score_lenient(item, text_response(item, text))
    if exact.status == "ok":
        assert msgspec.structs.replace(lenient, protocol="exact") == exact
    elif lenient.status == "ok":
        assert lenient.rule == "lenient"
