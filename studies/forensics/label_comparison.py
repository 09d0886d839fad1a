"""Whether answers to questions with a wrong published label repeat the label or the exact value."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, NamedTuple

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.forensics.agreement import readings, round_half_up, round_to
from numbench.forensics.answers import AnswersByTask, NumericAnswer
from numbench.forensics.computations import FLOAT64, Question

Agreement = Literal["exact", "label", "exact_short", "label_short", "both_short", "neither"]
AGREEMENTS: tuple[Agreement, ...] = (
    "exact", "label", "exact_short", "label_short", "both_short", "neither",
)  # fmt: skip


class LabelComparison(NamedTuple):
    """The answers to the questions of a task with a wrong label.

    counts: exact, label: equal in all 15 digits. exact_short, label_short: with fewer digits, and
    only that one agrees; both_short: both do, which decides nothing. ties: answers equal to a label
    that is also the exact value with a tie rounded up.
    """

    task: str
    answers: int
    counts: dict[Agreement, int]
    ties: int

    @property
    def for_exact(self) -> int:
        """Answers with the exact value."""
        return self.counts["exact"] + self.counts["exact_short"]

    @property
    def for_label(self) -> int:
        """Answers with the label's value."""
        return self.counts["label"] + self.counts["label_short"]


def has_wrong_label(question: Question) -> bool:
    """Return whether the label is not the exact value rounded to 15 digits."""
    known = question
    return known.label is not None and round_to(known.label, SIGNIFICANT_DIGITS) != round_to(
        known.truth, SIGNIFICANT_DIGITS
    )


def is_float64(question: Question) -> bool:
    """Return whether the label is what float64 arithmetic gives in the usual order."""
    label = question.label
    values = question.alternatives.get(FLOAT64, ())
    return label is not None and any(
        round_to(value, SIGNIFICANT_DIGITS) == round_to(label, SIGNIFICANT_DIGITS)
        for value in values
    )


def compare_with_labels(answers: AnswersByTask) -> list[LabelComparison]:
    """Count the answers of a run to questions with a wrong label, for each task that has any."""
    comparisons = []
    for task, given in answers.items():
        known = [answer for answer in given if has_wrong_label(answer.question)]
        counts: dict[Agreement, int] = dict.fromkeys(AGREEMENTS, 0)
        ties = 0
        for answer in known:
            agreement = _agreement(answer)
            counts[agreement] += 1
            ties += agreement == "label" and _is_tie(answer)
        if known:
            comparisons.append(LabelComparison(task, len(known), counts, ties))
    return comparisons


def _agreement(answer: NumericAnswer) -> Agreement:
    known = answer.question
    label = known.label or Decimal(0)
    value = round_to(answer.number, SIGNIFICANT_DIGITS)
    if value == round_to(known.truth, SIGNIFICANT_DIGITS):
        return "exact"
    if value == round_to(label, SIGNIFICANT_DIGITS):
        return "label"
    given = answer.given()
    agrees_with_label = given.value in readings((label,), given.digits)
    if given.agrees_with_truth:
        return "both_short" if agrees_with_label else "exact_short"
    return "label_short" if agrees_with_label else "neither"


def _is_tie(answer: NumericAnswer) -> bool:
    """Return whether the answer is the exact value with a tie rounded up."""
    rounded = round_half_up(answer.question.truth)
    return round_to(answer.number, SIGNIFICANT_DIGITS) == rounded
