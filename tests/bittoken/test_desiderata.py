"""The measures of the desiderata, for cases with known values."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from numbench.bittoken.desiderata import measures, table
from numbench.bittoken.desiderata.encodings_under_test import (
    DatasetNumbers,
    EncodedNumbers,
    EncodingUnderTest,
    all_encodings,
    dataset_numbers,
)
from numbench.bittoken.desiderata.table import (
    MEASURES,
    Measurements,
    format_measurement,
    measure_all,
    read_trained_scores,
)
from numbench.bittoken.desiderata.token_counts import (
    PUBLISHED_COLUMNS,
    measured_token_counts,
    published_token_counts,
)
from numbench.bittoken.encodings import ENCODINGS
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput

DECIMALS = np.array([1.0, -2.5, 0.1, 3.14159, 1e-9, 123456789.0])


@pytest.fixture(scope="module")
def measurements() -> Measurements:
    return measure_all(all_encodings(), dataset_numbers(open_dataset("short")), {"fone": 12.5})


def _row(measurements: Measurements, name: str, encodings: Sequence[str]) -> list[float | None]:
    return [measurements[name][encoding] for encoding in encodings]


def test_correct_digits_are_minus_the_logarithm_of_the_relative_error() -> None:
    class Inexact(EncodingUnderTest):
        def round_trip(self, values: np.ndarray) -> np.ndarray:
            return values * np.array([1, 1.001, 3, 0, -np.inf])

    result = measures.correct_digits(Inexact("bittoken"), np.array([2.0, 2.0, 2.0, 2.0, 2.0]))
    assert result == pytest.approx([17, 3, 0, 0, 0], abs=1e-9)


def test_decade_range_has_at_least_three_correct_digits() -> None:
    """The last digit of FoNE is 10^-32, three digits after the first one from 1e-29 on."""
    assert measures.precision_by_decade(EncodingUnderTest("fone")).decade_range == (-29, 16)
    assert measures.precision_by_decade(EncodingUnderTest("bittoken")).decade_range == (-324, 308)
    assert measures.precision_by_decade(EncodingUnderTest("subword")).decade_range == (-324, 308)
    assert measures.precision_by_decade(EncodingUnderTest("xval")).decade_range[1] == 14


def test_xval_distances_are_ordered_like_ratios() -> None:
    magnitudes = 10 ** np.random.default_rng(3).uniform(-10, 14, 2000)
    ratios, differences = measures.rank_correlations(ENCODINGS["xval"], magnitudes)
    assert ratios == pytest.approx(1, abs=1e-6)
    assert differences < 0.9


def test_norms_are_computed_at_the_width_of_the_network() -> None:
    small = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    assert measures.root_mean_squares(small).tolist() == pytest.approx([5 / math.sqrt(768), 0])
    ratio = math.sqrt(768) / 5
    assert measures.rms_normalised(small)[0] == pytest.approx([3 * ratio, 4 * ratio], rel=1e-4)
    full = np.array([3.0, 4.0] + [0.0] * 766)
    expected = (full - full.mean()) / full.std()
    assert measures.layer_normalised(small)[0] == pytest.approx(expected[:2], rel=1e-4)


def test_vectors_are_rounded_to_lower_precision() -> None:
    """e4m3 has three significand bits: multiples of 1/8 from 1 to 2."""
    small = np.array([[1.05, 1.07, -300.0]], np.float32)
    assert measures.rounded(small, torch.float8_e4m3fn).tolist() == [[1, 1.125, -288]]
    assert measures.rounded(small, torch.bfloat16)[0, 0] == np.float32(1.046875)


def test_recovered_percentage_counts_numbers() -> None:
    encoded = EncodedNumbers(ENCODINGS["bittoken"], DECIMALS)
    modified = encoded.vectors.copy()
    modified[0, 63] *= -1
    modified[1, 127] *= -1  # the reciprocal is ignored
    assert encoded.percent_recovered(modified) == pytest.approx(100 * 5 / 6)


def test_noise_flips_bits_with_the_probability_of_a_normal_distribution() -> None:
    many = np.random.default_rng(2).standard_normal(20_000)
    result = measures.percent_recovered_from_noise(
        EncodedNumbers(ENCODINGS["bittoken-no-reciprocal"], many), 0.5
    )
    assert result == pytest.approx(100 * scipy.stats.norm.cdf(2) ** 64, abs=1)


def test_noise_is_relative_to_the_rms_of_the_vectors() -> None:
    """Base 10: each of its 22 ones must stay above its rivals, 1 or 9 zeros, in 204 channels."""
    many = np.random.default_rng(2).standard_normal(20_000)
    lead = math.sqrt(204 / 22) / 0.8
    z = np.linspace(-8, 8, 4001)

    def wins(rivals: int) -> float:
        density = scipy.stats.norm.pdf(z) * scipy.stats.norm.cdf(z + lead) ** rivals
        return float(density.sum() * (z[1] - z[0]))

    result = measures.percent_recovered_from_noise(EncodedNumbers(ENCODINGS["base10"], many), 0.8)
    assert result == pytest.approx(100 * wins(1) ** 2 * wins(9) ** 20, abs=1.5)


def test_change_is_relative_to_the_length_of_the_vector() -> None:
    """From 1 to 1.5, one of 64 bits changes: a distance of 2 relative to a length of 8."""
    encoding = ENCODINGS["bittoken-no-reciprocal"]
    assert measures.mean_relative_change(
        encoding, np.array([1.0]), np.array([1.5])
    ) == pytest.approx(0.25)


def test_sign_tokens_preserve_signs() -> None:
    for encoding in all_encodings():
        percent = measures.percent_exact(encoding, DECIMALS)
        expected = {"xval": 0.0, "fone-log": percent}.get(encoding.name, 100.0)
        assert percent == expected, encoding.name


def test_measurements_of_a_bundled_dataset_match_the_paper(measurements: Measurements) -> None:
    names = [*ENCODINGS]
    assert list(measurements) == [measure.name for measure in MEASURES]
    assert _row(measurements, "tokens a number", ["bittoken", "xval", "base10"]) == [1, 1, 1]
    assert 1 < (measurements["tokens a number"]["fone"] or 0) < 1.5
    exact = _row(
        measurements, "exact, dataset %", ["bittoken", "fone", "base10", "digit", "subword"]
    )
    assert exact == [100] * 5
    assert (measurements["exact, dataset %"]["xval"] or 0) < 1
    assert _row(measurements, "digits, worst", ["bittoken", "fone", "base10"]) == [17] * 3
    for row in ("after RMSNorm %", "in bf16 %", "in FP8 %"):
        kept = [name for name in names if (measurements[row][name] or 0) > 99]
        assert kept == [name for name in names if name != "xval"]
    assert measurements["RMS, smallest"]["bittoken"] == measurements["RMS, largest"]["bittoken"]
    assert measurements["trained score %"] == {s.name: None for s in all_encodings()} | {
        "fone": 12.5
    }


def test_vector_measures_are_missing_for_numbers_written_as_text(
    measurements: Measurements,
) -> None:
    for measure in MEASURES:
        empty = measure.desideratum in ("D3", "D5", "D6", "D7", "D8", "D9")
        assert (measurements[measure.name]["subword"] is None) == empty, measure


def test_percentages_are_never_rounded_to_0_or_100() -> None:
    percent = next(measure for measure in MEASURES if measure.format == "percent")
    assert [format_measurement(percent, value) for value in (0, 1e-9, 50, 99.999, 100, None)] == [
        "0.0",
        "0.1",
        "50.0",
        "99.9",
        "100.0",
        "",
    ]


def test_dataset_numbers_are_operands_and_numeric_answers() -> None:
    dataset = open_dataset("v1")
    numbers = dataset_numbers(dataset)
    items = [item for task_items in dataset.by_task.values() for item in task_items]
    expected = [text for item in items for text in item.operands]
    expected += [item.answer for item in items if isinstance(item.answer, str)]
    expected += [text for item in items if not isinstance(item.answer, str) for text in item.answer]
    assert sorted(numbers.texts) == sorted(text for text in expected if text not in "ABCDEF")
    assert set(numbers.values.tolist()) == {float(text) for text in numbers.texts}
    assert np.isfinite(numbers.random).all() and len(numbers.random) > 19_000


def test_published_token_counts_are_read_from_the_file() -> None:
    result = published_token_counts()
    assert list(result) == ["MinMax", "Interval", "Sorting", "Add", "Mult", "Div"]
    assert str(result["Sorting"]["digit"]) == "60.0 + 58.0"
    assert str(result["Div"]["bittoken"]) == "6.1 + 2.0"


def test_measured_token_counts_are_means_over_items() -> None:
    result = measured_token_counts(open_dataset("v1"))
    assert len(result) == 9 and all(
        list(row) == list(PUBLISHED_COLUMNS.values()) for row in result.values()
    )
    assert str(result["Mult"]["bittoken"]) == "5.0 + 2.0"
    assert result["Interval"]["fone"].output == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoding,task\nfone,x\n", "missing column score"),
        ("encoding,task,score\nbits,x,1\n", "line 2: unknown encoding 'bits'"),
        ("encoding,task,score\nfone,x,1\nfone,y,nan\n", "line 3: score 'nan'"),
        ("encoding,task,score\nfone,x,101\n", "line 2: score '101'"),
        ("encoding,task,score\nfone,x,-1\n", "line 2: score '-1'"),
        ("encoding,task,score\nfone,x\n", "line 2: score None"),
        ("encoding,task,score\nfone,\udcff,1\n", "not a CSV file in UTF-8"),
    ],
)
def test_invalid_score_files_are_bad_input(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(BadInput, match=message):
        read_trained_scores(path)


def test_trained_scores_are_means_over_tasks(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        rows = [("encoding", "task", "score"), ("fone", "a", 10), ("fone", "b", 20)]
        csv.writer(file).writerows([*rows, ("digit", "a", 99.5)])
    assert read_trained_scores(path) == {"fone": 15, "digit": 99.5}


def test_measure_names_are_unique() -> None:
    assert len({measure.name for measure in table.MEASURES}) == len(table.MEASURES)


def test_magnitudes_exclude_zero() -> None:
    numbers = DatasetNumbers([], np.array([-2.0, 0.0, 1.0, 2.0]), np.zeros(0))
    assert numbers.magnitudes.tolist() == [1, 2]
