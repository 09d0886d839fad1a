"""Wrong answers that equal another computation: the report's tables, sentences and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from numbench.forensics.answers import (
    AnswersByTask,
    Question,
    numeric_answers,
    read_questions,
)
from numbench.forensics.findings import DISPLAY, RunFindings, expected_text, find
from numbench.reporting.comparison_tables import format_p_value
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.table_model import TextRow
from numbench.reporting.table_spec import TableContent, TableSpec, rows_table
from numbench.scoring import ScoredRun
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from numbench.reporting.report_data import ReportData

FINDINGS_CAPTION = (
    "What wrong answers are equal to: another power of ten, the sample deviation, float64 "
    "arithmetic and more than thirty other computations; for comparison tasks other orders, such "
    "as that without signs. Equal: in every digit that the answer gives; answers that are within "
    "0.1% of the sample deviation are counted under Conventions. Answers that are the exact value "
    "in fewer digits are not compared. Counted only if the digits of an answer separate the "
    "computation from the exact value; with the number expected by chance, from the run's other "
    "answers. A match does not prove how a model computed."
)
FINDINGS_HEADER = ("Model", "Reasoning", "Finding", "Compared", "Equal")

COUNTS_CAPTION = (
    "Computations that wrong answers equal, in every digit that they give, more often than by "
    "chance (p of at most 0.05, adjusted by Holm's method over all counts of the run). of: wrong "
    "answers that can be told from the computation; expected: matches by chance. The CSV file has "
    "the other counts too."
)
COUNTS_HEADER = ("Model", "Reasoning", "Task", "Equal to", "Answers", "of", "Expected", "Holm p")
COUNTS_CSV_HEADER = (
    *COUNTS_HEADER[:4], "Answers", "of", "Expected", "Low", "High", "p", "Holm p",
)  # fmt: skip


class RunMatches(NamedTuple):
    """The findings about one run of a report."""

    run: MeasuredRun
    findings: RunFindings


def run_matches(runs: Sequence[MeasuredRun]) -> list[RunMatches]:
    """Return the findings about each run with wrong answers.

    Empty under the protocol `paper`, which does not read answers as numbers of any length.
    """
    questions: dict[str, dict[str, Question]] = {}
    compared: list[MeasuredRun] = []
    answers: list[tuple[ScoredRun, AnswersByTask]] = []
    for run in runs:
        scored = run.scored
        if scored.protocol == "paper" or all(
            row.score.exact_match for rows in scored.rows.values() for row in rows
        ):
            continue
        known = questions.setdefault(scored.dataset.manifest.sha256, {})
        known.update(read_questions(scored, known))
        compared.append(run)
        answers.append((scored, numeric_answers(scored, known)))
    found = zip(compared, find(answers), strict=True)
    return [RunMatches(run, findings) for run, findings in found if findings.wrong]


def finding_rows(matches: Sequence[RunMatches]) -> list[TextRow]:
    """Return one row per run, for `FINDINGS_HEADER`."""
    return [
        [*_names(run), known.sentence, f"{known.wrong:,}", f"{known.matched:,}"]
        for run, known in matches
    ]


def count_rows(matches: Sequence[RunMatches]) -> list[TextRow]:
    """Return one row per count above chance, for `COUNTS_HEADER`."""
    return [
        [
            *_names(run),
            TASKS[count.task].display,
            DISPLAY[count.alternative],
            str(count.matches),
            str(count.decidable),
            expected_text(count.expected),
            format_p_value(count.adjusted),
        ]
        for run, known in matches
        for count in known.significant
    ]


def count_csv_rows(matches: Sequence[RunMatches]) -> list[TextRow]:
    """Return one row per run, task and computation, for `COUNTS_CSV_HEADER`; shares in percent."""
    return [
        [
            *_names(run),
            TASKS[count.task].display,
            DISPLAY[count.alternative],
            str(count.matches),
            str(count.decidable),
            f"{count.expected:.4g}",
            *(f"{100 * bound:.2f}" for bound in count.share),
            format_p_value(count.p_value),
            format_p_value(count.adjusted),
        ]
        for run, known in matches
        for count in known.explanations.counts
    ]


def finding_lines(matches: Sequence[RunMatches]) -> list[str]:
    """Return a line for each run with anything above chance."""
    return [f"{run.label}: {known.brief}" for run, known in matches if known.is_noteworthy]


def other_computations_json(matches: Sequence[RunMatches]) -> list[dict[str, object]]:
    """Return the field `other_computations` of `report.json`."""
    return [
        {
            "run": run.scored.path.as_posix(),
            "finding": known.sentence,
            "wrong": known.wrong,
            "matched": known.matched,
            "float64_log10_bayes_factor": known.evidence.log10_factor,
            "float64_verdict": known.evidence.verdict,
            "counts": [
                {
                    "task": count.task,
                    "computation": count.alternative,
                    "matches": count.matches,
                    "decidable": count.decidable,
                    "expected": count.expected,
                    "p_holm": count.adjusted,
                }
                for count in known.significant
            ],
        }
        for run, known in matches
    ]


def _names(run: MeasuredRun) -> tuple[str, str]:
    return run.entry.name, run.entry.reasoning


def _findings(data: ReportData) -> TableContent | None:
    rows = finding_rows(data.matches)
    return rows_table(data, FINDINGS_HEADER, rows, 3)


def _other_computations(data: ReportData) -> TableContent | None:
    rows = count_rows(data.matches)
    csv = COUNTS_CSV_HEADER, count_csv_rows(data.matches)
    return rows_table(data, COUNTS_HEADER, rows, 4, csv)


TABLES = (
    TableSpec(
        "findings",
        "What wrong answers are equal to",
        FINDINGS_CAPTION,
        _findings,
    ),
    TableSpec(
        "other_computations",
        "Other computations",
        COUNTS_CAPTION,
        _other_computations,
    ),
)
