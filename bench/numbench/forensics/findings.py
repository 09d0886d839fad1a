"""The findings about one run: which other computations its wrong answers equal, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.forensics.agreement import round_to
from numbench.forensics.answers import (
    MAX_ANSWERS,
    NUMERIC_TASKS,
    AnswersByTask,
    NumericAnswer,
    is_incorrect,
    numeric_answers,
    read_questions,
    sample_answers,
)
from numbench.forensics.calculator import CalculatorEvidence, calculator_evidence
from numbench.forensics.chance import (
    AlternativeCount,
    ChanceModel,
    WrongAnswers,
    count_matches,
)
from numbench.forensics.computations import COMPUTATIONS, Question
from numbench.scoring import ScoredRun
from numbench.stats.intervals import Interval
from numbench.stats.multiple_testing import holm
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from jinja2 import Template


class RunFindings(NamedTuple):
    """Which other computations the wrong answers of a run equal, and whether float64 shows.

    wrong: the number of wrong answers that are compared. shortened: see `WrongAnswers`. matched:
    wrong answers that equal a computation which occurs more often than by chance. drawn_from: the
    number of wrong answers from which those that are compared were drawn at random; 0 if all are.
    """

    wrong: int
    shortened: int
    counts: Sequence[AlternativeCount]
    matched: int
    drawn_from: int = 0
    evidence: CalculatorEvidence = CalculatorEvidence((), 0.0, Interval(0.0, 1.0))

    @property
    def significant(self) -> list[AlternativeCount]:
        """The counts above chance, strongest first."""
        counts = (count for count in self.counts if count.is_significant)
        return sorted(counts, key=lambda count: count.p_value)

    @property
    def sentence(self) -> str:
        """All findings in plain words."""
        known = {"tasks": TASKS, "computations": COMPUTATIONS, "most": MAX_ANSWERS}
        return " ".join(_template().render(run=self, **known).split())


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    text = Path(__file__).with_name("findings.txt.j2").read_text("utf-8")
    return Environment(undefined=StrictUndefined).from_string(text)


def find_matches(runs: Sequence[ScoredRun]) -> list[tuple[int, RunFindings]]:
    """Return the index of each run with wrong answers, and the findings about them.

    Empty under the protocol `paper`, which does not read answers as numbers of any length.
    """
    questions: dict[str, dict[str, Question]] = {}
    findings = [
        (index, find(run, questions.setdefault(run.dataset.manifest.sha256, {})))
        for index, run in enumerate(runs)
        if run.protocol != "paper"
        and not all(rows.columns["exact_match"].all() for rows in run.rows.values())
    ]
    return [(index, known) for index, known in findings if known.wrong]


def find(run: ScoredRun, questions: dict[str, Question]) -> RunFindings:
    """Compare the answers of a run, or a random sample of them, with other computations.

    questions: those of the dataset that other runs have read, to which those of this run are added.
    """
    run = run._replace(rows={t: rows for t, rows in run.rows.items() if t in NUMERIC_TASKS})
    wrong, every = sample_answers(run, is_wrong=True), sample_answers(run)
    for part in (wrong, every):
        questions.update(read_questions(part, questions))
    count = sum(
        int((is_incorrect(rows) & (rows.columns["sample"] == 0)).sum())
        for rows in run.rows.values()
    )
    return explain(numeric_answers(wrong, questions))._replace(
        evidence=calculator_evidence(numeric_answers(every, questions)),
        drawn_from=count if count > sum(map(len, wrong.rows.values())) else 0,
    )


def explain(run: AnswersByTask, others: Sequence[WrongAnswers] = ()) -> RunFindings:
    """Compare the wrong answers of a run with every alternative; without the evidence of float64.

    others: wrong answers that were compared elsewhere; all counts are corrected together.
    """
    tasks = [*(_compare(task, answers) for task, answers in run.items()), *others]
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
        if (given := answer.given()).value != round_to(given.truth, SIGNIFICANT_DIGITS)
    ]
    compared = [(question, given) for question, given in inexact if not given.agrees_with_truth]
    targets = [question.answers(given.digits) for question, given in compared]
    names = [
        [name for name, answers in known.items() if given.value in answers]
        for (_, given), known in zip(compared, targets, strict=True)
    ]
    chance = ChanceModel([given for _, given in compared], SIGNIFICANT_DIGITS)
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
