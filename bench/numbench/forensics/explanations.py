"""Count the wrong answers that equal another computation, against the number expected by chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numbench.forensics.agreement import ANSWER_DIGITS, readings, round_to
from numbench.forensics.alternatives import ALTERNATIVES
from numbench.forensics.answers import AnswersByTask, NumericAnswer, Question
from numbench.forensics.chance import (
    ChanceMatches,
    ChanceModel,
    GivenAnswer,
    Targets,
    make_targets,
)
from numbench.records import Item
from numbench.stats.intervals import Interval, wilson
from numbench.stats.multiple_testing import holm

SIGNIFICANCE = 0.05


class WrongAnswer(NamedTuple):
    """A wrong answer, as written and as compared, and the names of the alternatives it equals."""

    answer: NumericAnswer
    given: GivenAnswer
    names: Sequence[str]


class WrongAnswers(NamedTuple):
    """The wrong answers of a run to the questions of a task.

    shortened: those that are the exact value, rounded or truncated to the digits that they give.
    They are the result of no other computation, and are not compared. wrong: the others.
    """

    answered: int
    shortened: int
    wrong: Sequence[WrongAnswer]


class AlternativeCount(NamedTuple):
    """How often wrong answers equal one alternative.

    decidable: wrong answers whose digits separate the alternative from the exact value. matches:
    those that agree with the alternative. expected: matches by chance. p_value: the probability of
    so many by chance; adjusted: by Holm's method over all counts of the run.
    """

    task: str
    alternative: str
    decidable: int
    matches: int
    expected: float
    p_value: float
    adjusted: float = 1.0

    @property
    def share(self) -> Interval:
        """The 95 % interval of the share of matches among the decidable answers."""
        return wilson(self.matches, self.decidable)

    @property
    def is_significant(self) -> bool:
        """Whether there are more matches than by chance."""
        return self.adjusted <= SIGNIFICANCE


class MatchingChoice(NamedTuple):
    """A wrong answer to a comparison task, and the names of the alternatives that it equals."""

    item: Item
    answer: str
    names: Sequence[str]


class WrongChoices(NamedTuple):
    """The wrong answers to the questions of a comparison task; see `numbench.forensics.choices`.

    wrong: their number. matching: those that equal an alternative.
    """

    task: str
    wrong: int
    counts: Sequence[AlternativeCount]
    matching: Sequence[MatchingChoice]


class Explanations(NamedTuple):
    """The counts of one run. matched: per task, wrong answers that equal any alternative with a
    significant count. choices: the wrong answers to each comparison task."""

    wrong: Mapping[str, WrongAnswers]
    counts: Sequence[AlternativeCount]
    matched: Mapping[str, int]
    choices: Mapping[str, WrongChoices] = {}


def explain(
    runs: Sequence[AnswersByTask], choices: Sequence[Sequence[WrongChoices]] = ()
) -> list[Explanations]:
    """Compare the wrong answers of runs with every alternative.

    choices: of each run, those to the comparison tasks, whose counts are corrected together with
    the others.
    """
    comparisons = [
        {task: TaskComparison(task, answers) for task, answers in run.items()} for run in runs
    ]
    _compare([comparison for of_run in comparisons for comparison in of_run.values()])
    return [
        _explanations(of_run, choices_of_run)
        for of_run, choices_of_run in zip(comparisons, choices or [()] * len(runs), strict=True)
    ]


def _explanations(
    comparisons: Mapping[str, TaskComparison], choices: Sequence[WrongChoices]
) -> Explanations:
    wrong = {task: known.wrong_answers() for task, known in comparisons.items()}
    counts = [count for known in comparisons.values() for count in known.counts()]
    counts += [count for known in choices for count in known.counts]
    adjusted = holm([count.p_value for count in counts])
    counts = [count._replace(adjusted=value) for count, value in zip(counts, adjusted, strict=True)]
    significant: dict[str, set[str]] = {}
    for count in counts:
        if count.is_significant:
            significant.setdefault(count.task, set()).add(count.alternative)
    named = {task: [answer.names for answer in known.wrong] for task, known in wrong.items()}
    named |= {known.task: [choice.names for choice in known.matching] for known in choices}
    matched = {
        task: sum(not significant.get(task, set()).isdisjoint(names) for names in answers_of_task)
        for task, answers_of_task in named.items()
    }
    return Explanations(wrong, counts, matched, {known.task: known for known in choices})


def _compare(comparisons: Sequence[TaskComparison]) -> None:
    """Compare all answers; those of several runs to one question at once, which is faster."""
    same: dict[tuple[Question, int], list[tuple[TaskComparison, int]]] = {}
    for comparison in comparisons:
        for index, (answer, given) in enumerate(comparison.compared):
            same.setdefault((answer.question, given.digits), []).append((comparison, index))
    for (question, digits), answers in same.items():
        targets = _targets(question, digits)
        for comparison, index in answers:
            comparison.compare(index, targets)


def _targets(question: Question, digits: int) -> dict[str, Targets]:
    """Return the answers of so many digits that agree with each alternative.

    Without those that agree with the exact value, and without alternatives that have no other.
    """
    truth = question.expression.truth
    exact = readings((truth,), digits)
    different = {
        name: readings(values, digits) - exact for name, values in question.alternatives.items()
    }
    known = make_targets(frozenset().union(*different.values()), truth, digits, ANSWER_DIGITS)
    return {
        name: {value: known[value] for value in values}
        for name, values in different.items()
        if values
    }


class TaskComparison:
    """The comparison of one run's wrong answers to the questions of a task.

    compared: its wrong answers, except those that are the exact value in fewer digits.
    """

    def __init__(self, task: str, answers: Sequence[NumericAnswer]) -> None:
        """Select the answers."""
        self._task = task
        self._answered = len(answers)
        given = [(answer, answer.given()) for answer in answers]
        inexact = [
            (answer, known)
            for answer, known in given
            if known.value != round_to(known.truth, ANSWER_DIGITS)
        ]
        self.compared = [(a, known) for a, known in inexact if not known.agrees_with_truth]
        self._shortened = len(inexact) - len(self.compared)
        self._chance = ChanceModel([known for _, known in self.compared], ANSWER_DIGITS)
        self._names: list[list[str]] = [[] for _ in self.compared]
        self._trials: dict[str, list[ChanceMatches]] = {}

    def compare(self, index: int, targets: Mapping[str, Targets]) -> None:
        """Compare one answer with the alternatives. targets: of each, for the answer's digits."""
        known = self.compared[index][1]
        for name, of_alternative in targets.items():
            matches = self._chance.matches(known, of_alternative)
            self._trials.setdefault(name, []).append(matches)
            if known.value in of_alternative:
                self._names[index].append(name)

    def wrong_answers(self) -> WrongAnswers:
        """Return the wrong answers with the alternatives that they equal."""
        wrong = [
            WrongAnswer(answer, known, names)
            for (answer, known), names in zip(self.compared, self._names, strict=True)
        ]
        return WrongAnswers(self._answered, self._shortened, wrong)

    def counts(self) -> list[AlternativeCount]:
        """Return the count of every alternative that can be told from an exact value."""
        matches = Counter(name for names in self._names for name in names)
        return [
            _count(self._task, name, matches[name], self._trials[name])
            for name in (alternative.name for alternative in ALTERNATIVES)
            if name in self._trials
        ]


def _count(
    task: str, alternative: str, matches: int, trials: Sequence[ChanceMatches]
) -> AlternativeCount:
    expected = max(
        expected_matches([(trial.by_answer, trial.others) for trial in trials]),
        expected_matches([(trial.by_error, trial.others) for trial in trials]),
        expected_matches([(trial.by_unit, trial.all_others) for trial in trials]),
    )
    p_value = poisson_tail(matches, expected)
    return AlternativeCount(task, alternative, len(trials), matches, expected, p_value)


def expected_matches(trials: Sequence[tuple[int, int]]) -> float:
    """Return the expected number of matches from pairs (matching other answers, other answers).

    The number of pairs that were looked at limits what can be known about a rare match: the pairs
    count as if one more of them matched, in each of the trials. A trial without other answers
    counts as a certain match.
    """
    pairs = sum(others for _, others in trials)
    rates = (matching / others if others else 1.0 for matching, others in trials)
    return math.fsum(rates) + len(trials) / (pairs + 1)


def poisson_tail(count: int, expected: float) -> float:
    """Return the probability of at least `count` events where `expected` are expected."""
    if count <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    term = math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
    if count <= expected:
        below = (
            math.exp(k * math.log(expected) - expected - math.lgamma(k + 1)) for k in range(count)
        )
        return max(0.0, 1.0 - math.fsum(below))
    total, k = 0.0, count
    while term > total * 1e-17:
        total += term
        k += 1
        term *= expected / k
    return min(1.0, total)
