"""The measures of the desiderata, for cases with known values."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from matplotlib.image import imread

from bittoken.desiderata import measures
from bittoken.desiderata.encoding_under_test import (
    DatasetNumbers,
    EncodingUnderTest,
    dataset_numbers,
)
from bittoken.desiderata.figure import draw_figure
from bittoken.desiderata.measures import MEASURES
from bittoken.desiderata.report import Values, format_value, read_trained_scores
from bittoken.desiderata.token_counts import (
    PUBLISHED_COLUMNS,
    measured_token_counts,
    published_token_counts,
)
from bittoken.encodings import ENCODINGS
from bittoken.vocabulary import ENCODING_NAMES
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput

DECIMALS = np.array([1.0, -2.5, 0.1, 3.14159, 1e-9, 123456789.0])


def encoding_with(name: str, values: Sequence[float] | np.ndarray = DECIMALS) -> EncodingUnderTest:
    """Return an encoding with the numbers to measure it on."""
    return EncodingUnderTest(name, DatasetNumbers([], np.asarray(values), np.zeros(0)))


@pytest.fixture(scope="module")
def measurements() -> Values:
    numbers = dataset_numbers(open_dataset("short"))
    encodings = [EncodingUnderTest(name, numbers) for name in ENCODING_NAMES]
    return {measure.name: {e.name: measure.of(e) for e in encodings} for measure in MEASURES}


def _row(measurements: Values, name: str, encodings: Sequence[str]) -> list[float | None]:
    return [measurements[name][encoding] for encoding in encodings]


def _decades(name: str) -> tuple[float | None, float | None]:
    encoding = encoding_with(name)
    return measures.precise_decade(encoding, 0), measures.precise_decade(encoding, -1)


class Rounding(EncodingUnderTest):
    """An encoding with errors that are known."""

    factor: float | np.ndarray = 0.5

    def round_trip(self, values: np.ndarray) -> np.ndarray:
        return values * self.factor


def test_correct_digits_are_minus_the_logarithm_of_the_relative_error() -> None:
    inexact = Rounding("bittoken", DatasetNumbers([], DECIMALS, DECIMALS))
    inexact.factor = np.array([1, 1.001, 3, 0, -np.inf])
    result = inexact.correct_digits(np.array([2.0, 2.0, 2.0, 2.0, 2.0]))
    assert result == pytest.approx([17, 3, 0, 0, 0], abs=1e-9)


def test_decade_range_has_at_least_three_correct_digits() -> None:
    """The last digit of FoNE is 10^-32, three digits after the first one from 1e-29 on."""
    assert _decades("fone") == (-29, 16)
    assert _decades("base10-fixed") == (-25, 14)
    # The unit is 2^-101 = 4e-31: half of it is 0.05 % of 1e-27 at most times two.
    assert _decades("base2-fixed") == (-27, 14)
    assert _decades("bittoken") == _decades("subword") == (-324, 308)
    assert _decades("xval")[1] == 14


def test_encoding_without_a_precise_decade_has_no_range() -> None:
    coarse = Rounding("bittoken", DatasetNumbers([], DECIMALS, DECIMALS))
    assert measures.precise_decade(coarse, 0) is measures.precise_decade(coarse, -1) is None


def test_xval_distances_are_ordered_like_ratios() -> None:
    encoding = encoding_with("xval", np.sort(10 ** np.random.default_rng(3).uniform(-10, 14, 2000)))
    assert measures.rank_correlation(encoding, np.log10) == pytest.approx(1, abs=1e-6)
    assert (measures.rank_correlation(encoding, np.positive) or 1) < 0.9


def test_norms_are_computed_at_the_width_of_the_network() -> None:
    small = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    rms = measures.root_mean_squares(small)
    assert rms.tolist() == pytest.approx([5 / math.sqrt(768), 0])
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
    encoding = encoding_with("bittoken")
    modified = encoding.vectors.copy()
    modified[0, 63] *= -1
    modified[1, 127] *= -1  # the reciprocal is ignored
    assert encoding.percent_recovered(modified) == pytest.approx(100 * 5 / 6)


def test_noise_flips_bits_with_the_probability_of_a_normal_distribution() -> None:
    many = encoding_with("bittoken-no-reciprocal", np.random.default_rng(2).standard_normal(20_000))
    result = measures.percent_recovered_from_noise(many, 0.5)
    assert result == pytest.approx(100 * scipy.stats.norm.cdf(2) ** 64, abs=1)


def test_noise_is_relative_to_the_rms_of_the_vectors() -> None:
    """Base 10: each of its 22 ones must stay above its rivals, 1 or 9 zeros, in 204 channels."""
    many = encoding_with("base10", np.random.default_rng(2).standard_normal(20_000))
    lead = math.sqrt(204 / 22) / 0.8
    z = np.linspace(-8, 8, 4001)

    def wins(rivals: int) -> float:
        density = scipy.stats.norm.pdf(z) * scipy.stats.norm.cdf(z + lead) ** rivals
        return float(density.sum() * (z[1] - z[0]))

    result = measures.percent_recovered_from_noise(many, 0.8)
    assert result == pytest.approx(100 * wins(1) ** 2 * wins(9) ** 20, abs=1.5)


def test_change_is_relative_to_the_length_of_the_vector() -> None:
    """From 1 to 1.5, one of 64 bits changes: a distance of 2 relative to a length of 8."""
    encoding = encoding_with("bittoken-no-reciprocal", [1.0])
    assert measures.relative_change(encoding, np.array([1.5])) == pytest.approx(0.25)


def test_sign_tokens_preserve_signs() -> None:
    assert ENCODINGS["fone"].signed is False
    for name in ("fone", "bittoken", "base2-fixed", "base10-fixed", "digit"):
        encoding = encoding_with(name)
        in_binary = np.array([1.0, -2.5, 123456789.0])
        assert measures.percent_exact(encoding, in_binary) == 100
        assert measures.percent_exact(encoding, DECIMALS) == 100


@pytest.mark.slow
def test_measurements_of_a_bundled_dataset_match_the_paper(measurements: Values) -> None:
    names = [*ENCODINGS]
    assert list(measurements) == [measure.name for measure in MEASURES]
    assert _row(measurements, "tokens a number", ["bittoken", "xval", "base10"]) == [1, 1, 1]
    assert 1 < (measurements["tokens a number"]["fone"] or 0) < 1.5
    exact = [name for name, value in measurements["exact, dataset %"].items() if value == 100]
    assert exact == [name for name in ENCODING_NAMES if name not in ("xval", "fone-log")]
    assert (measurements["exact, dataset %"]["xval"] or 0) < 1
    assert _row(measurements, "digits, worst", ["bittoken", "fone", "base10"]) == [17] * 3
    for row in ("after RMSNorm %", "in bf16 %", "in FP8 %"):
        kept = [name for name in names if (measurements[row][name] or 0) > 99]
        assert kept == [name for name in names if name != "xval"]
    assert measurements["RMS, smallest"]["bittoken"] == measurements["RMS, largest"]["bittoken"]
    assert set(measurements["trained score %"].values()) == {None}


@pytest.mark.slow
def test_vector_measures_are_missing_for_numbers_written_as_text(
    measurements: Values,
) -> None:
    for measure in MEASURES:
        empty = measure.desideratum in ("D3", "D5", "D6", "D7", "D8", "D9")
        assert (measurements[measure.name]["subword"] is None) == empty, measure


def test_percentages_are_never_rounded_to_0_or_100() -> None:
    percent = next(measure for measure in MEASURES if measure.format == "percent")
    assert [format_value(percent, value) for value in (0, 1e-9, 50, 99.999, 100, None)] == [
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
        ("encoding,task\nfone,x\n", "column score is missing"),
        ("encoding,task,score\nbits,x,1\n", "line 2: unknown encoding 'bits'"),
        ("encoding,task,score\nfone,x,1\nfone,y,nan\n", "line 3: score 'nan'"),
        ("encoding,task,score\nfone,x,101\n", "line 2: score '101'"),
        ("encoding,task,score\nfone,x,-1\n", "line 2: score '-1'"),
        ("encoding,task,score\nfone,x\n", "line 2: 2 fields"),
        ("encoding,task,score\nfone,\udcff,1\n", "not UTF-8"),
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
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


def test_curves_that_coincide_remain_visible() -> None:
    """Both versions of BitToken have the same precision: the pixels show both colours."""
    encodings = [encoding_with(name, DECIMALS) for name in ("bittoken", "bittoken-no-reciprocal")]
    image = imread(io.BytesIO(draw_figure(encodings)["png"]))[..., :3]
    curves = image[30:410, 90:450]  # the first panel
    rgb = (curves * 255).round().astype(int) @ [1 << 16, 1 << 8, 1]
    assert {0x0072B2, 0xD55E00} <= set(rgb.ravel().tolist())


def test_any_number_of_encodings_and_any_width_can_be_measured() -> None:
    wide = np.zeros((3, 1000), np.float32)
    wide[:, 0] = 2
    assert measures.layer_normalised(wide).shape == (3, 1000)
    encodings = [encoding_with(name) for name in ENCODINGS] * 3
    assert b"</svg>" in draw_figure(encodings)["svg"]


def test_magnitudes_exclude_zero() -> None:
    numbers = DatasetNumbers([], np.array([-2.0, 0.0, 1.0, 2.0]), np.zeros(0))
    assert numbers.magnitudes.tolist() == [1, 2]
