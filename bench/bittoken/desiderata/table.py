"""The table of measures: what its rows are, and their figures."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch

from bench.bittoken.desiderata import values, vectors
from bench.bittoken.desiderata.subjects import Numbers, Subject, Vectored
from bench.bittoken.vocabulary import ENCODING_NAMES
from bench.errors import BadInput

Form = Literal["percent", "number", "power", "small"]


class Measure(NamedTuple):
    """A row: the desideratum, what is measured, and the form of its figures."""

    desideratum: str
    name: str
    form: Form


MEASURES = (
    Measure("D1", "tokens a number", "number"),
    Measure("D2", "exact, dataset %", "percent"),
    Measure("D2", "exact, float64 %", "percent"),
    Measure("D3", "ρ with ratios", "number"),
    Measure("D3", "ρ with differences", "number"),
    Measure("D4", "smallest magnitude", "power"),
    Measure("D4", "largest magnitude", "power"),
    Measure("D4", "digits, median", "number"),
    Measure("D4", "digits, worst", "number"),
    Measure("D5", "RMS, smallest", "number"),
    Measure("D5", "RMS, largest", "number"),
    Measure("D5", "after RMSNorm %", "percent"),
    Measure("D5", "after LayerNorm %", "percent"),
    Measure("D6", "in bf16 %", "percent"),
    Measure("D6", "in FP8 %", "percent"),
    Measure("D7", "change, next value", "small"),
    Measure("D7", "change, 1 % more", "small"),
    Measure("D8", "σ = 0.1, decoded %", "percent"),
    Measure("D8", "σ = 0.3, decoded %", "percent"),
    Measure("D8", "σ = 0.5, decoded %", "percent"),
    Measure("D9", "trained score %", "percent"),
)

Figures = dict[str, dict[str, float | None]]
"""Measure's name → subject's name → figure; None where there is nothing to measure."""


def measure_subject(subject: Subject, numbers: Numbers) -> list[float | None]:
    """The figures of one subject for `MEASURES`, the trained score left out."""
    reach = values.precision(subject).reach
    digits = values.correct_digits(subject, numbers.magnitudes)
    found: list[float | None] = [
        values.mean_tokens(subject, numbers),
        values.exact_share(subject, numbers.values),
        values.exact_share(subject, numbers.random),
    ]
    order: tuple[float | None, ...] = (None, None)
    rest: list[float | None] = [None] * 11
    if subject.encoding is not None:
        order = values.rank_correlations(subject.encoding, numbers.magnitudes)
        rest = [*_of_vectors(Vectored(subject.encoding, numbers.values), numbers)]
    return [*found, *order, *reach, float(np.median(digits)), float(digits.min()), *rest]


def _of_vectors(vectored: Vectored, numbers: Numbers) -> list[float]:
    """D5 to D8."""
    encoding, found = vectored.encoding, vectored.vectors
    sizes = vectors.root_mean_squares(found)
    magnitudes = numbers.magnitudes
    nearest = np.nextafter(magnitudes, np.inf)
    return [
        float(sizes.min()),
        float(sizes.max()),
        vectored.surviving(vectors.rms_normalised(found)),
        vectored.surviving(vectors.layer_normalised(found)),
        vectored.surviving(vectors.rounded(found, torch.bfloat16)),
        vectored.surviving(vectors.rounded(found, torch.float8_e4m3fn)),
        *(
            vectors.mean_change(encoding, magnitudes, moved)
            for moved in (nearest, magnitudes * 1.01)
        ),
        *(vectors.noisy_share(vectored, sigma) for sigma in (0.1, 0.3, 0.5)),
    ]


def figures_of(listed: list[Subject], numbers: Numbers, trained: dict[str, float]) -> Figures:
    """All figures. `trained`: subject's name → score in percent."""
    columns = {
        subject.name: [*measure_subject(subject, numbers), trained.get(subject.name)]
        for subject in listed
    }
    return {
        measure.name: {name: column[place] for name, column in columns.items()}
        for place, measure in enumerate(MEASURES)
    }


def shown(measure: Measure, figure: float | None) -> str:
    """A figure as the tables print it; empty where there is none."""
    if figure is None:
        return ""
    if measure.form == "percent":
        # Nothing but all is 100 %, and nothing but none is 0 %.
        held = min(max(figure, 0.1), 99.9) if 0 < figure < 100 else figure
        return f"{held:.1f}"
    if measure.form == "power":
        return f"1e{figure:.0f}"
    if measure.form == "small":
        return f"{figure:.0e}" if 0 < figure < 0.01 else f"{figure:.2f}"
    return f"{figure:z.2f}"


def read_trained(path: Path) -> dict[str, float]:
    """The mean score of each encoding over the rows of a CSV file: encoding, task, score (percent).

    BadInput where the file is missing, lacks a column, or names an unknown encoding.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such file; give a CSV file with columns encoding, task, score")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            scores = _scores(csv.DictReader(file), path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: no CSV file in UTF-8 ({error})") from None
    return {name: sum(found) / len(found) for name, found in scores.items()}


def _scores(reader: csv.DictReader[str], path: Path) -> dict[str, list[float]]:
    missing = {"encoding", "task", "score"} - set(reader.fieldnames or ())
    if missing:
        raise BadInput(f"{path}: no column {', '.join(sorted(missing))}")
    scores: dict[str, list[float]] = {}
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if row["encoding"] not in ENCODING_NAMES:
            known = ", ".join(ENCODING_NAMES)
            raise BadInput(f"{where}: unknown encoding {row['encoding']!r}; known: {known}")
        scores.setdefault(row["encoding"], []).append(_score(row["score"], where))
    return scores


def _score(text: str | None, where: str) -> float:
    try:
        score = float(text or "")
    except ValueError:
        score = math.nan
    if not 0 <= score <= 100:
        raise BadInput(f"{where}: score {text!r} is no percentage from 0 to 100")
    return score
