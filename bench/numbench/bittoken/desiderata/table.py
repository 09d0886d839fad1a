"""The table of desiderata: its rows, and their values for each encoding."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch

from numbench.bittoken.desiderata import measures
from numbench.bittoken.desiderata.encodings_under_test import (
    DatasetNumbers,
    EncodedNumbers,
    EncodingUnderTest,
)
from numbench.bittoken.vocabulary import ENCODING_NAMES
from numbench.errors import BadInput

Format = Literal["percent", "number", "power", "small"]


class Measure(NamedTuple):
    """A row: the desideratum, the name of the measure, and the number format."""

    desideratum: str
    name: str
    format: Format


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

Measurements = dict[str, dict[str, float | None]]
"""Name of the measure → name of the encoding → value; None if it does not apply."""


def measure_encoding(encoding: EncodingUnderTest, numbers: DatasetNumbers) -> list[float | None]:
    """Return the values of one encoding for `MEASURES`, except the trained score."""
    decade_range = measures.precision_by_decade(encoding).decade_range
    digits = measures.correct_digits(encoding, numbers.magnitudes)
    exactness: list[float | None] = [
        measures.mean_tokens(encoding, numbers),
        measures.percent_exact(encoding, numbers.values),
        measures.percent_exact(encoding, numbers.random),
    ]
    precision = [*decade_range, float(np.median(digits)), float(digits.min())]
    if encoding.encoding is None:
        return [*exactness, None, None, *precision, *[None] * 11]
    correlations = measures.rank_correlations(encoding.encoding, numbers.magnitudes)
    encoded = EncodedNumbers(encoding.encoding, numbers.values)
    return [*exactness, *correlations, *precision, *_vector_measures(encoded, numbers)]


def _vector_measures(encoded: EncodedNumbers, numbers: DatasetNumbers) -> list[float]:
    """Return the values of the measures of D5 to D8."""
    encoding, vectors = encoded.encoding, encoded.vectors
    rms = measures.root_mean_squares(vectors)
    magnitudes = numbers.magnitudes
    next_values = np.nextafter(magnitudes, np.inf)
    return [
        float(rms.min()),
        float(rms.max()),
        encoded.percent_recovered(measures.rms_normalised(vectors)),
        encoded.percent_recovered(measures.layer_normalised(vectors)),
        encoded.percent_recovered(measures.rounded(vectors, torch.bfloat16)),
        encoded.percent_recovered(measures.rounded(vectors, torch.float8_e4m3fn)),
        measures.mean_relative_change(encoding, magnitudes, next_values),
        measures.mean_relative_change(encoding, magnitudes, magnitudes * 1.01),
        *(measures.percent_recovered_from_noise(encoded, sigma) for sigma in (0.1, 0.3, 0.5)),
    ]


def measure_all(
    encodings: list[EncodingUnderTest], numbers: DatasetNumbers, trained_scores: dict[str, float]
) -> Measurements:
    """Return all measurements. trained_scores: score in percent by name of the encoding."""
    columns = {
        encoding.name: [*measure_encoding(encoding, numbers), trained_scores.get(encoding.name)]
        for encoding in encodings
    }
    return {
        measure.name: {name: column[row] for name, column in columns.items()}
        for row, measure in enumerate(MEASURES)
    }


def format_measurement(measure: Measure, value: float | None) -> str:
    """Return a value as printed in the tables; empty if there is none."""
    if value is None:
        return ""
    if measure.format == "percent":
        # Never round 99.96 to 100.0, or 0.04 to 0.0.
        shown = min(max(value, 0.1), 99.9) if 0 < value < 100 else value
        return f"{shown:.1f}"
    if measure.format == "power":
        return f"1e{value:.0f}"
    if measure.format == "small":
        return f"{value:.0e}" if 0 < value < 0.01 else f"{value:.2f}"
    return f"{value:z.2f}"


def read_trained_scores(path: Path) -> dict[str, float]:
    """Return the mean score of each encoding in a CSV file with columns encoding, task, score.

    Raises BadInput if the file is missing, lacks a column, or contains an unknown encoding or a
    score that is not a percentage.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such file; use a CSV file with columns encoding, task, score")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            scores = _parse_scores(csv.DictReader(file), path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not a CSV file in UTF-8 ({error})") from None
    return {name: sum(values) / len(values) for name, values in scores.items()}


def _parse_scores(reader: csv.DictReader[str], path: Path) -> dict[str, list[float]]:
    missing = {"encoding", "task", "score"} - set(reader.fieldnames or ())
    if missing:
        raise BadInput(f"{path}: missing column {', '.join(sorted(missing))}")
    scores: dict[str, list[float]] = {}
    for row in reader:
        location = f"{path}, line {reader.line_num}"
        if row["encoding"] not in ENCODING_NAMES:
            names = ", ".join(ENCODING_NAMES)
            raise BadInput(f"{location}: unknown encoding {row['encoding']!r}; use one of {names}")
        scores.setdefault(row["encoding"], []).append(_parse_score(row["score"], location))
    return scores


def _parse_score(text: str | None, location: str) -> float:
    try:
        score = float(text or "")
    except ValueError:
        score = math.nan
    if not 0 <= score <= 100:
        raise BadInput(f"{location}: score {text!r} is not a percentage from 0 to 100")
    return score
