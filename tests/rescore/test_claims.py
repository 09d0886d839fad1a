"""The paper's claims as tests: each can hold, fail or be undecided."""

from __future__ import annotations

import pytest

from numbench.reporting.entries import published_entries
from numbench.reporting.table_model import Entry, Estimate
from numbench.rescore.claims import HARD, TESTS, ClaimResult, claim_status, claims
from numbench.tasks import PAPER_TASKS


def _entry(
    reasoning: str = "none",
    model: str = "M",
    tokens: float | None = None,
    half_width: float = 0.5,
    **scores: float,
) -> Entry:
    """Return a model with the score 90 on every task that is not given."""
    values = {task: scores.get(task, 90.0) for task in PAPER_TASKS}
    tables = {
        "log_smape": {t: Estimate(v, v - half_width, v + half_width) for t, v in values.items()},
        "tokens": {} if tokens is None else {task: Estimate(tokens) for task in PAPER_TASKS},
    }
    return Entry(model, reasoning, tables)


def _hard(score: float) -> dict[str, float]:
    return dict.fromkeys(HARD, score)


PERFECT = {"minmax": 100.0, "interval": 100.0, "sorting": 99.0}
CASES = [
    ("comparisons_solved", [_entry(**PERFECT)], True),
    ("comparisons_solved", [_entry(**PERFECT), _entry(**{**PERFECT, "sorting": 98.9})], False),
    ("comparisons_solved", [_entry(**PERFECT)] * 9 + [_entry()], True),
    ("comparisons_solved", [Entry("M", "none", {"log_smape": {}})], None),
    ("simple_tasks_solved", [_entry(addition=95, sorting=95)], True),
    ("simple_tasks_solved", [_entry(addition=94.9, sorting=95)], False),
    ("simple_tasks_solved", [], None),
    ("addition_and_mean_excellent", [_entry()], True),
    ("addition_and_mean_excellent", [_entry(), _entry(mean=89)], False),
    ("clear_separation", [_entry("maximal"), _entry(**_hard(40))], True),
    ("clear_separation", [_entry("maximal", std=40), _entry(**_hard(40))], False),
    ("clear_separation", [_entry("maximal")], None),
    ("none_above_sixty", [_entry("maximal"), _entry(**_hard(60))], True),
    ("none_above_sixty", [_entry(**{**_hard(60), "division": 60.1})], False),
    ("none_above_sixty", [_entry("maximal")], None),
    ("reasoning_improves", [_entry("maximal"), _entry("minimal", **_hard(40))], True),
    ("reasoning_improves", [_entry("maximal"), _entry("minimal", **{**_hard(40), "std": 95})],
     False),
    ("reasoning_improves", [_entry("maximal"), _entry(model="N", **_hard(40))], None),
    ("thousands_of_tokens", [_entry("maximal", tokens=5000), _entry(tokens=3)], True),
    ("thousands_of_tokens", [_entry("maximal", tokens=30001)], False),
    ("thousands_of_tokens", [_entry("maximal")], None),
    ("stable_at_500", [_entry(half_width=1)], True),
    ("stable_at_500", [_entry(half_width=1.25)], False),
    ("stable_at_500", published_entries(), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "entries", "holds"), CASES)
def test_claim_is_decided_by_the_scores(
    name: str, entries: list[Entry], holds: bool | None
) -> None:
    result = TESTS[name](entries)
    assert result.holds is holds, result.text
    assert result.text


def test_claims_and_tests_correspond() -> None:
    assert list(claims()) == list(TESTS)
    for name in TESTS:
        assert {holds for case, _, holds in CASES if case == name} >= {True, False}


def test_result_names_the_configuration() -> None:
    text = TESTS["none_above_sixty"](published_entries()).text
    assert text == "highest Div 51.3 (Gemini 2.5 Pro, minimal)"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (True, True, "holds by both scorings"),
        (True, False, "no longer holds"),
        (False, True, "holds only by exact scoring"),
        (False, False, "does not hold by either scoring"),
        (None, True, "undecided with these files"),
        (True, None, "undecided with these files"),
    ],
)
def test_status_describes_the_change(before: bool | None, after: bool | None, words: str) -> None:
    assert claim_status(ClaimResult(before, ""), ClaimResult(after, "")) == words
