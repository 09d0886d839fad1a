"""Compute the tables of the study from runs on the paper's questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import fmean

import pandas as pd

import numbench as nb
from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.forensics.agreement import FLOAT64_DIGITS
from numbench.forensics.answers import (
    AnswersByTask,
    numeric_answers,
    read_questions,
    sample_answers,
)
from numbench.forensics.calculator import CalculatorEvidence, calculator_evidence
from numbench.forensics.computations import COMPUTATIONS, Question
from numbench.forensics.findings import RunFindings, explain
from numbench.published import published_means
from numbench.scoring import ScoredItem
from numbench.scoring.metrics import log_smape, round_significant
from studies.forensics.choices import CHOICES, wrong_choices
from studies.forensics.controls import exact_answers, float64_answers, plant_float64
from studies.forensics.label_comparison import compare_with_labels, has_wrong_label, is_float64

PLANTED = ((0.05, FLOAT64_DIGITS), (0.1, SIGNIFICANT_DIGITS))
"""Shares of answers that are replaced by float64 results, and the digits of these."""

PLANTED_DRAWS = 5
NEAR = Decimal("0.001")
"""Largest relative distance from a deviation at which an answer follows it."""

OUTPUT_LIMIT = 65_535
"""Tokens at which Gemini's responses end."""

_ENDLESS = re.compile(r"(\d)\1{99}")
"""A digit that is repeated 100 times."""


def compute(runs: Sequence[Path]) -> Mapping[str, pd.DataFrame]:
    """Return the tables by name."""
    order = list(published_means())
    scored = sorted(
        (nb.score(run) for run in runs),
        key=lambda run: order.index((run.info.display, run.info.reasoning)),
    )
    names = [f"{run.info.display} ({run.info.reasoning})" for run in scored]
    questions: dict[str, Question] = {}
    for run in scored:
        questions.update(read_questions(run, questions))
    answers = [numeric_answers(run, questions) for run in scored]
    samples = [sample_answers(run, is_wrong=True) for run in scored]
    findings = [explain(numeric_answers(run, questions), wrong_choices(run)) for run in samples]
    wrong = [question for question in questions.values() if has_wrong_label(question)]
    given = dict(zip(names, answers, strict=True))
    controls = {
        "*float64 arithmetic*": float64_answers(questions.values()),
        "*exact values*": exact_answers(questions.values()),
    }
    return {
        "wrong_labels": pd.DataFrame(
            {"task": question.item.task, "is_float64": is_float64(question)} for question in wrong
        ),
        "labels": pd.DataFrame(_labels(given | controls)),
        "float64": pd.DataFrame(_float64(given, controls)),
        "deviations": pd.DataFrame(
            _deviations(name, run.rows["std"])
            for name, run in zip(names, scored, strict=True)
            if "std" in run.rows
        ),
        "tokens": pd.DataFrame(map(_tokens, names, scored)),
        "computations": pd.DataFrame(_computations(names, findings)),
    }


def _labels(answers: Mapping[str, AnswersByTask]) -> Iterator[dict[str, object]]:
    """Yield the answers to questions with a wrong label, by what they equal."""
    for name, given in answers.items():
        for compared in compare_with_labels(given):
            yield {
                "config": name,
                "task": compared.task,
                "answers": compared.answers,
                "exact": compared.for_exact,
                "label": compared.for_label,
                "exact_15_digits": compared.counts["exact"],
                "label_15_digits": compared.counts["label"],
                "ties": compared.ties,
            }


def _float64(
    answers: Mapping[str, AnswersByTask], controls: Mapping[str, AnswersByTask]
) -> Iterator[dict[str, object]]:
    """Yield the evidence of float64 arithmetic, and how often a planted share would show."""
    for name, given in answers.items():
        flagged = [
            sum(
                calculator_evidence(
                    plant_float64(given, share, f"{share} {draw}", digits)
                ).is_flagged
                for draw in range(PLANTED_DRAWS)
            )
            for share, digits in PLANTED
        ]
        yield _evidence(name, calculator_evidence(given)) | {
            "flagged_17_digits": flagged[0],
            "flagged_15_digits": flagged[1],
        }
    for name, given in controls.items():
        yield _evidence(name, calculator_evidence(given))


def _evidence(name: str, evidence: CalculatorEvidence) -> dict[str, object]:
    return {
        "config": name,
        "decisive": len(evidence.decisive),
        "float64": len(evidence.float64),
        "exact": sum(answer.is_exact for answer in evidence.decisive),
        "log10_bayes_factor": evidence.log10_factor,
        "largest_share": 100 * evidence.share.high,
        "verdict": evidence.verdict,
    }


def _deviations(name: str, rows: Sequence[ScoredItem]) -> dict[str, object]:
    """Return how many answers to Std are near the population and near the sample deviation."""
    answers = near_population = near_sample = 0
    scores, either = [], []
    (sample,) = nb.TASKS["std"].conventions
    for row in rows:
        if not row.is_answered:
            continue
        score = row.score.log_smape or 0.0
        best = score
        if isinstance(row.score.parsed, str):
            answer, truth = Decimal(row.score.parsed), Decimal(str(row.item.answer))
            other = Decimal(sample.exact_answer(row.item.operator, row.item.operands))
            answers += 1
            near_population += _is_near(answer, truth)
            near_sample += _is_near(answer, other)
            best = max(score, log_smape(round_significant(answer), round_significant(other)))
        scores.append(score)
        either.append(best)
    return {
        "config": name,
        "answers": answers,
        "population": near_population,
        "sample": near_sample,
        "log_smape": 100 * fmean(scores),
        "either_log_smape": 100 * fmean(either),
    }


def _is_near(answer: Decimal, value: Decimal) -> bool:
    return abs(answer - value) <= NEAR * abs(value)


def _tokens(name: str, run: nb.ScoredRun) -> dict[str, object]:
    """Return the generated tokens of a run, and those of answers with endless digits."""
    rows = pd.DataFrame(
        {
            "tokens": row.response.usage.generated,
            "digit": match[1] if (match := _ENDLESS.search(row.response.text)) else "",
            "has_text": bool(row.response.text.strip()),
        }
        for of_task in run.rows.values()
        for row in of_task
        if row.response
    )
    is_endless = rows["digit"] != ""
    at_limit = rows["tokens"] >= OUTPUT_LIMIT - 15
    return {
        "config": name,
        "responses": len(rows),
        "mean": rows["tokens"].mean(),
        "median": rows["tokens"].median(),
        "zeros": (rows["digit"] == "0").sum(),
        "nines": (rows["digit"] == "9").sum(),
        "other_digits": (is_endless & ~rows["digit"].isin(["0", "9"])).sum(),
        "at_limit": (is_endless & at_limit).sum(),
        "mean_of_others": rows["tokens"][~is_endless].mean(),
        "tokens": rows["tokens"].sum(),
        "endless_tokens": rows["tokens"][is_endless].sum(),
        "empty_at_limit": (at_limit & ~rows["has_text"]).sum(),
    }


_DISPLAY = COMPUTATIONS | {known.name: known.display for known in CHOICES}


def _computations(
    names: Sequence[str], findings: Sequence[RunFindings]
) -> Iterator[dict[str, object]]:
    """Yield the computations that any wrong answer equals."""
    for name, known in zip(names, findings, strict=True):
        for count in known.counts:
            if count.matches:
                yield {
                    "config": name,
                    "task": count.task,
                    "computation": _DISPLAY[count.alternative],
                    "compared": count.decidable,
                    "equal": count.matches,
                    "expected": count.expected,
                    "adjusted_p": count.adjusted,
                    "significant": count.is_significant,
                }
