"""The findings about one run, and the sentences that say them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from numbench.forensics.alternatives import ALTERNATIVES, CONVENTION
from numbench.forensics.answers import AnswersByTask
from numbench.forensics.calculator import CalculatorEvidence, calculator_evidence
from numbench.forensics.choices import CHOICES, wrong_choices
from numbench.forensics.explanations import AlternativeCount, Explanations, explain
from numbench.scoring import ScoredRun
from numbench.scoring.error_kinds import score_with_conventions
from numbench.scoring.scored_run import counted_rows
from numbench.tasks import TASKS

DISPLAY = {known.name: known.display for known in ALTERNATIVES}
DISPLAY |= {known.name: known.display for known in CHOICES}
"""Alternative → the same in words."""

_VERDICTS = {
    "float64 arithmetic": "The answers show float64 arithmetic",
    "undecided": "Whether there is float64 arithmetic is undecided",
    "no sign": "No sign of float64 arithmetic",
}


class RunFindings(NamedTuple):
    """Which other computations the wrong answers of a run equal, and whether float64 shows.

    followed: task with other conventions → wrong answers within 0.1% of the answer by one of them,
    as in the table of conventions.
    """

    explanations: Explanations
    evidence: CalculatorEvidence
    followed: Mapping[str, int] = {}

    @property
    def wrong(self) -> int:
        """The wrong answers that are compared."""
        return sum(self.explanations.wrong.values())

    @property
    def matched(self) -> int:
        """Those that equal a computation which occurs more often than by chance."""
        return sum(self.explanations.matched.values())

    @property
    def significant(self) -> list[AlternativeCount]:
        """The counts above chance, strongest first."""
        counts = (count for count in self.explanations.counts if count.is_significant)
        return sorted(counts, key=lambda count: count.p_value)

    @property
    def is_noteworthy(self) -> bool:
        """Whether anything is above chance."""
        return bool(self.significant) or self.evidence.is_flagged

    @property
    def sentence(self) -> str:
        """All findings in plain words."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        yield self._matches()
        yield from self._conventions()
        if self.evidence.decisive:
            yield self._float64()

    def _matches(self) -> str:
        wrong = f"{self.wrong:,} wrong answers"
        if shortened := self.explanations.shortened:
            wrong += f" (without {shortened:,} that are the exact value in fewer digits)"
        if not self.significant:
            return f"None of the other computations occurs more often than by chance among {wrong}."
        parts = "; ".join(
            f"{TASKS[c.task].display}: {DISPLAY[c.alternative]} {times(c.matches)}, "
            f"{expected_text(c.expected)} expected"
            for c in self.significant
        )
        return (
            f"{self.matched:,} of {wrong} equal another computation that occurs more often than by "
            f"chance ({parts})."
        )

    def _conventions(self) -> Iterator[str]:
        """Say how many answers follow another convention, and how many of these have no error."""
        for task, followed in self.followed.items():
            if followed:
                names = " or ".join(convention.display for convention in TASKS[task].conventions)
                equal = sum(
                    count.matches
                    for count in self.explanations.counts
                    if (count.task, count.alternative) == (task, CONVENTION)
                )
                yield (
                    f"{TASKS[task].display}: {followed:,} wrong answers follow the {names}: they "
                    "are within 0.1% of it and closer to it than to the exact value; "
                    f"{equal:,} equal it in every digit that they give."
                )

    def _float64(self) -> str:
        known = self.evidence
        share = 100 * (known.share.low if known.is_flagged else known.share.high)
        return (
            f"{_VERDICTS[known.verdict]}: {len(known.float64):,} of {len(known.decisive):,} "
            "answers that separate it from exact arithmetic are its results (Bayes factor "
            f"{factor_text(known)}; {'at least' if known.is_flagged else 'at most'} {share:.1f}% "
            "come from it)."
        )


def find(runs: Sequence[tuple[ScoredRun, AnswersByTask]]) -> list[RunFindings]:
    """Compare the answers of runs, each with its numeric ones, with other computations.

    Runs on the same questions together take little longer than one of them.
    """
    answers = [of_run for _, of_run in runs]
    explanations = explain(answers, [wrong_choices(run) for run, _ in runs])
    evidence = [calculator_evidence(of_run) for of_run in answers]
    followed = [_followed(run, tuple(of_run)) for run, of_run in runs]
    return [RunFindings(*known) for known in zip(explanations, evidence, followed, strict=True)]


def _followed(run: ScoredRun, tasks: Sequence[str]) -> dict[str, int]:
    """Return the answers by another convention, for the tasks that have one."""
    return {
        task: sum(
            score_with_conventions(row.item, row.score).follows for row in counted_rows(run, task)
        )
        for task in tasks
        if TASKS[task].conventions
    }


def expected_text(value: float) -> str:
    """Format an expected number of matches."""
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"


def times(count: int) -> str:
    """Return `once` or `3 times`."""
    return "once" if count == 1 else f"{count} times"


def factor_text(known: CalculatorEvidence) -> str:
    """Format a Bayes factor."""
    exponent = known.log10_factor
    return f"{10**exponent:.2g}" if -3 < exponent < 3 else f"10^{exponent:.0f}"
