"""Compute all results of the page from runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from numbench.forensics.agreement import ANSWER_DIGITS, FLOAT64_DIGITS
from numbench.forensics.answers import (
    AnswersByTask,
    Question,
    Questions,
    numeric_answers,
    read_questions,
)
from numbench.forensics.calculator import CalculatorEvidence, calculator_evidence
from numbench.forensics.controls import exact_answers, float64_answers, plant_float64
from numbench.forensics.findings import RunFindings, find
from numbench.forensics.label_comparison import (
    LabelAudit,
    LabelComparison,
    audit_labels,
    compare_with_labels,
)
from numbench.reporting.build import find_run_folders
from numbench.reporting.entries import measure
from numbench.scoring import ScoredRun, score_run
from numbench.study_import import STUDY_FILES, import_study

PLANTED = (
    (0.02, FLOAT64_DIGITS),
    (0.05, FLOAT64_DIGITS),
    (0.05, ANSWER_DIGITS),
    (0.1, ANSWER_DIGITS),
)
"""Shares of answers that are replaced by float64 results, and the digits of these."""

PLANTED_DRAWS = 10


class AnalyzedRun(NamedTuple):
    """The results of one run.

    labels: of the tasks with wrong labels. flagged: for each of `PLANTED`, how many of
    `PLANTED_DRAWS` draws are flagged.
    """

    name: str
    dataset: str
    findings: RunFindings
    labels: Sequence[LabelComparison]
    flagged: Sequence[int]


class _ReadRun(NamedTuple):
    name: str
    dataset: str
    scored: ScoredRun
    answers: AnswersByTask


class Control(NamedTuple):
    """Answers of known origin to the questions of a dataset."""

    name: str
    labels: Sequence[LabelComparison]
    evidence: CalculatorEvidence


class Analysis(NamedTuple):
    """The results of all runs, and the label audit and controls of each dataset, by its name."""

    runs: Sequence[AnalyzedRun]
    audits: dict[str, list[LabelAudit]]
    controls: dict[str, list[Control]]


def find_sources(
    sources: Sequence[Path], imported: Path, on_message: Callable[[str], None]
) -> list[Path]:
    """Return the run folders in `sources`; the study's files are imported to `imported` first."""
    folders: list[Path] = []
    for source in sources:
        if source.is_dir() and any(source.glob(STUDY_FILES)):
            folders += import_study(source, imported, on_message)
        else:
            folders += find_run_folders([source])
    return list(dict.fromkeys(folders))


def analyze(folders: Sequence[Path], on_message: Callable[[str], None]) -> Analysis:
    """Score the runs and compute all results. on_message: receives a message before each step."""
    questions: dict[str, dict[str, Question]] = {}
    compared: list[_ReadRun] = []
    for measured in measure([score_run(folder) for folder in folders]):
        scored = measured.scored
        name = f"{scored.dataset.name}@{scored.dataset.manifest.sha256[:6]}"
        known = questions.setdefault(name, {})
        known.update(read_questions(scored, known))
        answers = numeric_answers(scored, known)
        compared.append(_ReadRun(measured.label, name, scored, answers))
    on_message("comparing wrong answers with other computations")
    findings = find([(run.scored, run.answers) for run in compared])
    runs = []
    for run, found in zip(compared, findings, strict=True):
        on_message(f"planting float64 results in the answers of {run.name}")
        labels, flagged = compare_with_labels(run.answers), _flagged_draws(run.answers)
        runs.append(AnalyzedRun(run.name, run.dataset, found, labels, flagged))
    audits, controls = {}, {}
    for name, known in questions.items():
        on_message(f"computing the controls on {name}")
        audits[name] = audit_labels(known)
        controls[name] = _controls(known)
    return Analysis(runs, audits, controls)


def _flagged_draws(answers: AnswersByTask) -> list[int]:
    return [
        sum(
            calculator_evidence(plant_float64(answers, share, f"{share} {draw}", digits)).is_flagged
            for draw in range(PLANTED_DRAWS)
        )
        for share, digits in PLANTED
    ]


def _controls(questions: Questions) -> list[Control]:
    known = list(questions.values())
    answers = {
        "float64 arithmetic (`baseline/float64`)": float64_answers(known),
        f"exact values, {ANSWER_DIGITS} digits": exact_answers(known),
        f"exact values, {FLOAT64_DIGITS} digits": exact_answers(known, FLOAT64_DIGITS),
    }
    return [
        Control(
            name,
            compare_with_labels(given),
            calculator_evidence(given),
        )
        for name, given in answers.items()
    ]
