"""Answers by another convention: their error kind, and the score if they were accepted."""

from __future__ import annotations

from decimal import Decimal
from statistics import pstdev, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Response
from numbench.scoring import score_exact
from numbench.scoring.conventions import score_with_conventions
from numbench.scoring.error_kinds import follows_convention
from numbench.tasks import TASKS, Convention, Task
from numbench.tasks.items import make_item
from tests.scoring.items import answer_response

LIST = make_item("std", "std", ("1", "2", "4"), {})
"""Population deviation 1.24721912892465, sample deviation 1.52752523165195."""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1.52752523165195", "sample_std"),
        ("1.5275", "sample_std"),
        ("1.529", "sample_std"),
        ("1.5291", "rough"),
        ("1.526", "sample_std"),
        ("1.5259", "rough"),
        ("-1.5275", "other"),
        ("15.275", "other"),
        ("1.25", "precision"),
        ("1.24721912892465", None),
        ("1e400", "other"),
        ("0", "other"),
    ],
)
def test_error_kind_of_a_std(answer: str, kind: str | None) -> None:
    assert score_exact(LIST, answer_response(LIST, answer)).error_kind == kind


def test_only_the_task_with_the_convention_has_its_error_kind() -> None:
    mean = make_item("mean", "mean", ("1", "2", "4"), {})
    assert score_exact(mean, answer_response(mean, "1.52752523165195")).error_kind == "rough"


def test_a_question_without_an_answer_by_the_convention_is_scored_by_its_own() -> None:
    """The sample deviation of one number is undefined."""
    alone = make_item("std", "std", ("5",), {})
    score = score_exact(alone, answer_response(alone, "1"))
    assert score.error_kind == "other"
    assert not score_with_conventions(alone, score).exact_match


@pytest.mark.parametrize(
    ("answer", "log_smape", "match", "follows"),
    [
        ("1.24721912892465", 1, True, False),
        ("1.52752523165195", 1, True, True),
        ("1.5275252316519519", 1, True, True),
    ],
)
def test_either_exact_answer_is_accepted(
    answer: str, log_smape: float, match: bool, follows: bool
) -> None:
    score = score_exact(LIST, answer_response(LIST, answer))
    assert score_with_conventions(LIST, score) == (log_smape, match, follows)


@pytest.mark.parametrize("text", ["", "no idea", '{"answer": null}'])
def test_a_text_without_an_answer_gets_nothing(text: str) -> None:
    score = score_exact(LIST, Response(item_id=LIST.id, text=text))
    assert score_with_conventions(LIST, score) == (0, False, False)


numbers = st.decimals(-(10**6), 10**6, places=3)


@given(st.lists(numbers, min_size=2, max_size=6), numbers)
def test_the_better_of_both_scores_counts(operands: list[Decimal], answer: Decimal) -> None:
    """Compared with scoring against each deviation alone."""
    item = make_item("std", "std", tuple(f"{number:f}" for number in operands), {})
    response = answer_response(item, f"{answer:f}")
    score = score_exact(item, response)
    other = make_item("addition", "+", (f"{stdev(operands):.40f}", "0"), {})
    alternative = score_exact(other, response)
    both = score_with_conventions(item, score)
    assert score.log_smape is not None and alternative.log_smape is not None
    assert both.log_smape == pytest.approx(max(score.log_smape, alternative.log_smape), abs=1e-12)
    assert both.log_smape >= score.log_smape
    assert both.exact_match >= score.exact_match


@given(st.lists(numbers, min_size=2, max_size=6, unique=True), st.floats(-0.003, 0.003))
def test_an_answer_follows_the_closer_convention(operands: list[Decimal], error: float) -> None:
    population, sample = pstdev(operands), stdev(operands)
    answer = sample * (1 + Decimal(error))
    follows = follows_convention(answer, sample, population)
    if abs(abs(error) - 0.001) > 1e-6:
        assert follows == (abs(error) < 0.001)


def test_of_two_close_answers_the_closer_one_is_followed() -> None:
    sample, population = Decimal("1.0005"), Decimal(1)
    assert follows_convention(Decimal("1.0003"), sample, population)
    assert not follows_convention(Decimal("1.0002"), sample, population)


def test_a_plugin_can_declare_a_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded-down quotients instead of quotients, without an error kind of their own."""
    floor = Convention("floor", lambda _, operands: str(int(operands[0]) // int(operands[1])))
    division = TASKS["division"]
    task = Task(
        name="ratio",
        operators=("/",),
        sample=division.sample,
        exact_answer=division.exact_answer,
        conventions=(floor,),
    )
    monkeypatch.setitem(TASKS, "ratio", task)
    item = make_item("ratio", "/", ("70", "8"), {}, prompt="What is 70 / 8?")
    score = score_exact(item, answer_response(item, "8"))
    assert (score.exact_match, score.error_kind) == (False, "other")
    assert score_with_conventions(item, score) == (1, True, True)


def test_conventions_need_numbers() -> None:
    interval = TASKS["interval"]
    with pytest.raises(ValueError, match="conventions need metric log_smape"):
        Task(
            name="choice",
            operators=("choice",),
            sample=interval.sample,
            exact_answer=interval.exact_answer,
            answer_kind="letter",
            metric="exact_match",
            conventions=(Convention("other", lambda _, __: "A"),),
        )
