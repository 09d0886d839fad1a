"""The paper's claims as tests: each can hold, fail, and be beyond what the scores tell."""

from __future__ import annotations

import pytest

from bench.report.layout import Entry, Estimate
from bench.report.published import published_entries
from bench.rescore.claims import HARD, TESTS, Finding, claims, judgement
from bench.tasks import TASKS


def _entry(
    reasoning: str = "none",
    model: str = "M",
    tokens: float | None = None,
    reach: float = 0.5,
    **scores: float,
) -> Entry:
    """A model whose every task has the score 90, or the one given."""
    values = {task: scores.get(task, 90.0) for task in TASKS}
    tables = {
        "log_smape": {t: Estimate(v, v - reach, v + reach) for t, v in values.items()},
        "tokens": {} if tokens is None else {task: Estimate(tokens) for task in TASKS},
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
    ("stable_at_500", [_entry(reach=1)], True),
    ("stable_at_500", [_entry(reach=1.25)], False),
    ("stable_at_500", published_entries(), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "entries", "holds"), CASES)
def test_a_claim_is_judged_by_its_scores(name: str, entries: list[Entry], holds: bool) -> None:
    found = TESTS[name](entries)
    assert found.holds is holds, found.text
    assert found.text


def test_every_claim_has_its_test_and_every_test_its_claim() -> None:
    assert list(claims()) == list(TESTS)
    for name in TESTS:
        assert {holds for case, _, holds in CASES if case == name} >= {True, False}


def test_the_numbers_name_who_has_them() -> None:
    text = TESTS["none_above_sixty"](published_entries()).text
    assert text == "highest Div 51.3 (Gemini 2.5 Pro, minimal)"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (True, True, "holds, by either scoring"),
        (True, False, "no longer holds"),
        (False, True, "holds now, and did not by the study's scoring"),
        (False, False, "does not hold, by either scoring"),
        (None, True, "cannot be told with these files"),
        (True, None, "cannot be told with these files"),
    ],
)
def test_the_judgement_says_what_changes(
    before: bool | None, after: bool | None, words: str
) -> None:
    assert judgement(Finding(before, ""), Finding(after, "")) == words
