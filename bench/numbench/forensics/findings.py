"""The findings about one run: which other computations its wrong answers equal, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numbench.forensics.agreement import ANSWER_DIGITS, round_to
from numbench.forensics.answers import AnswersByTask, NumericAnswer
from numbench.forensics.calculator import CalculatorEvidence, calculator_evidence
from numbench.forensics.chance import (
    AlternativeCount,
    ChanceModel,
    WrongAnswers,
    count_matches,
)
from numbench.forensics.choices import CHOICES, wrong_choices
from numbench.forensics.computations import COMPUTATIONS
from numbench.scoring import ScoredRun
from numbench.stats.intervals import Interval
from numbench.stats.multiple_testing import holm
from numbench.tasks import TASKS

DISPLAY = COMPUTATIONS | {known.name: known.display for known in CHOICES}
"""Alternative → the same in words."""

_VERDICTS = {
    "float64 arithmetic": "The answers show float64 arithmetic",
    "undecided": "Whether there is float64 arithmetic is undecided",
    "no sign": "No sign of float64 arithmetic",
}


class RunFindings(NamedTuple):
    """Which other computations the wrong answers of a run equal, and whether float64 shows.

    wrong: the number of wrong answers that are compared. shortened: see `WrongAnswers`. matched:
    wrong answers that equal a computation which occurs more often than by chance.
    """

    wrong: int
    shortened: int
    counts: Sequence[AlternativeCount]
    matched: int
    evidence: CalculatorEvidence = CalculatorEvidence((), 0.0, Interval(0.0, 1.0))

    @property
    def significant(self) -> list[AlternativeCount]:
        """The counts above chance, strongest first."""
        counts = (count for count in self.counts if count.is_significant)
        return sorted(counts, key=lambda count: count.p_value)

    @property
    def is_noteworthy(self) -> bool:
        """Whether anything is above chance."""
        return bool(self.significant) or self.evidence.is_flagged

    @property
    def sentence(self) -> str:
        """All findings in plain words."""
        return f"{self._matches()} {self._float64() if self.evidence.decisive else ''}".rstrip()

    def _matches(self) -> str:
        wrong = f"{self.wrong:,} wrong answers"
        if shortened := self.shortened:
            wrong += f" (without {shortened:,} that are the exact value in fewer digits)"
        if not self.significant:
            return f"None of the other computations occurs more often than by chance among {wrong}."
        parts = "; ".join(
            f"{TASKS[c.task].display}: {DISPLAY[c.alternative]} "
            f"{'once' if c.matches == 1 else f'{c.matches} times'}, "
            f"{c.expected:{'.1f' if c.expected >= 0.1 else '.2g'}} expected"
            for c in self.significant
        )
        return (
            f"{self.matched:,} of {wrong} equal another computation that occurs more often than by "
            f"chance ({parts})."
        )

    def _float64(self) -> str:
        known = self.evidence
        exponent = known.log10_factor
        factor = f"{10**exponent:.2g}" if -3 < exponent < 3 else f"10^{exponent:.0f}"
        share = 100 * (known.share.low if known.is_flagged else known.share.high)
        return (
            f"{_VERDICTS[known.verdict]}: {len(known.float64):,} of {len(known.decisive):,} "
            "answers that separate it from exact arithmetic are its results (Bayes factor "
            f"{factor}; {'at least' if known.is_flagged else 'at most'} {share:.1f}% "
            "come from it)."
        )


def find(runs: Sequence[tuple[ScoredRun, AnswersByTask]]) -> list[RunFindings]:
    """Compare the answers of runs, each with its numeric ones, with other computations."""
    return [
        explain(answers, wrong_choices(run))._replace(evidence=calculator_evidence(answers))
        for run, answers in runs
    ]


def explain(run: AnswersByTask, choices: Sequence[WrongAnswers] = ()) -> RunFindings:
    """Compare the wrong answers of a run with every alternative; without the evidence of float64.

    choices: those to the comparison tasks, whose counts are corrected together with the others.
    """
    tasks = [*(_compare(task, answers) for task, answers in run.items()), *choices]
    counts = [count for known in tasks for count in known.counts]
    adjusted = holm([count.p_value for count in counts])
    counts = [count._replace(adjusted=value) for count, value in zip(counts, adjusted, strict=True)]
    matched = 0
    for known in tasks:
        above = {c.alternative for c in counts if c.task == known.task and c.is_significant}
        matched += sum(not above.isdisjoint(names) for names in known.names)
    wrong = sum(len(known.names) for known in tasks)
    return RunFindings(wrong, sum(known.shortened for known in tasks), counts, matched)


def _compare(task: str, answers: Sequence[NumericAnswer]) -> WrongAnswers:
    """Compare the wrong answers of a run to the questions of a task with every alternative."""
    inexact = [
        (answer.question, given)
        for answer in answers
        if (given := answer.given()).value != round_to(given.truth, ANSWER_DIGITS)
    ]
    compared = [(question, given) for question, given in inexact if not given.agrees_with_truth]
    targets = [question.answers(given.digits) for question, given in compared]
    names = [
        [name for name, answers in known.items() if given.value in answers]
        for (_, given), known in zip(compared, targets, strict=True)
    ]
    chance = ChanceModel([given for _, given in compared], ANSWER_DIGITS)
    counts = []
    for name in COMPUTATIONS:
        decidable = [
            (given, known[name])
            for (_, given), known in zip(compared, targets, strict=True)
            if name in known
        ]
        matches = sum(name in of_answer for of_answer in names)
        if matches:
            trials = [chance.trials(given, answers) for given, answers in decidable]
            counts.append(count_matches(task, name, matches, *zip(*trials, strict=True)))
        elif decidable:
            counts.append(AlternativeCount(task, name, len(decidable), 0))
    return WrongAnswers(task, counts, names, len(inexact) - len(compared))
