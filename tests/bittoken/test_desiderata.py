"""The measures of the desiderata, on cases whose figures are known."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from bench.bittoken.desiderata import table, values, vectors
from bench.bittoken.desiderata.counts import COLUMNS, measured_counts, published_counts
from bench.bittoken.desiderata.subjects import Numbers, Subject, Vectored, numbers_of, subjects
from bench.bittoken.desiderata.table import MEASURES, Figures, figures_of, read_trained, shown
from bench.bittoken.encodings import ENCODINGS
from bench.dataset.store import open_dataset
from bench.errors import BadInput

DECIMALS = np.array([1.0, -2.5, 0.1, 3.14159, 1e-9, 123456789.0])


@pytest.fixture(scope="module")
def figures() -> Figures:
    return figures_of(subjects(), numbers_of(open_dataset("v1")), {"fone": 12.5})


def _row(figures: Figures, name: str, subjects: Sequence[str]) -> list[float | None]:
    return [figures[name][subject] for subject in subjects]


def test_spearman_is_scipy_s_ties_too() -> None:
    draws = np.random.default_rng(1)
    left = draws.integers(0, 8, 200).astype(float)
    right = left + draws.integers(0, 8, 200)
    expected = scipy.stats.spearmanr(left, right).statistic
    assert values.spearman(left, right) == pytest.approx(expected)


def test_correct_digits_are_the_logarithm_of_the_relative_error() -> None:
    class Off(Subject):
        def back(self, values: np.ndarray) -> np.ndarray:
            return values * np.array([1, 1.001, 3, 0, -np.inf])

    found = values.correct_digits(Off("bittoken"), np.array([2.0, 2.0, 2.0, 2.0, 2.0]))
    assert found == pytest.approx([17, 3, 0, 0, 0], abs=1e-9)


def test_reach_is_where_three_digits_are_left() -> None:
    """FoNE: 10^-32 is its last digit, so that 1e-29 to 1e-28 has three more below the first."""
    assert values.precision(Subject("fone")).reach == (-29, 16)
    assert values.precision(Subject("bittoken")).reach == (-324, 308)
    assert values.precision(Subject("subword")).reach == (-324, 308)
    assert values.precision(Subject("xval")).reach[1] == 14


def test_xval_is_in_the_order_of_ratios() -> None:
    magnitudes = 10 ** np.random.default_rng(3).uniform(-10, 14, 2000)
    ratios, differences = values.rank_correlations(ENCODINGS["xval"], magnitudes)
    assert ratios == pytest.approx(1, abs=1e-6)
    assert differences < 0.9


def test_norms_at_the_networks_width() -> None:
    small = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    assert vectors.root_mean_squares(small).tolist() == pytest.approx([5 / math.sqrt(768), 0])
    ratio = math.sqrt(768) / 5
    assert vectors.rms_normalised(small)[0] == pytest.approx([3 * ratio, 4 * ratio], rel=1e-4)
    full = np.array([3.0, 4.0] + [0.0] * 766)
    expected = (full - full.mean()) / full.std()
    assert vectors.layer_normalised(small)[0] == pytest.approx(expected[:2], rel=1e-4)


def test_casts_are_torch_s() -> None:
    """e4m3 has three significand bits: steps of 1/8 from 1 to 2."""
    small = np.array([[1.05, 1.07, -300.0]], np.float32)
    assert vectors.rounded(small, torch.float8_e4m3fn).tolist() == [[1, 1.125, -288]]
    assert vectors.rounded(small, torch.bfloat16)[0, 0] == np.float32(1.046875)


def test_survivors_are_counted_number_by_number() -> None:
    vectored = Vectored(ENCODINGS["bittoken"], DECIMALS)
    spoilt = vectored.vectors.copy()
    spoilt[0, 63] *= -1
    spoilt[1, 127] *= -1  # the reciprocal is not read
    assert vectored.surviving(spoilt) == pytest.approx(100 * 5 / 6)


def test_noise_flips_bits_as_often_as_a_normal_distribution_says() -> None:
    many = np.random.default_rng(2).standard_normal(20_000)
    found = vectors.noisy_share(Vectored(ENCODINGS["bittoken-no-reciprocal"], many), 0.5)
    assert found == pytest.approx(100 * scipy.stats.norm.cdf(2) ** 64, abs=1)


def test_noise_is_measured_by_the_vectors_own_size() -> None:
    """Base 10: each of its 22 ones must stay above its rivals, 1 or 9 zeros, in 204 channels."""
    many = np.random.default_rng(2).standard_normal(20_000)
    lead = math.sqrt(204 / 22) / 0.8
    z = np.linspace(-8, 8, 4001)

    def wins(rivals: int) -> float:
        density = scipy.stats.norm.pdf(z) * scipy.stats.norm.cdf(z + lead) ** rivals
        return float(density.sum() * (z[1] - z[0]))

    found = vectors.noisy_share(Vectored(ENCODINGS["base10"], many), 0.8)
    assert found == pytest.approx(100 * wins(1) ** 2 * wins(9) ** 20, abs=1.5)


def test_change_of_a_vector_is_relative_to_its_length() -> None:
    """1 to 1.5 sets one bit of 64: a distance of 2 to a length of 8."""
    encoding = ENCODINGS["bittoken-no-reciprocal"]
    assert vectors.mean_change(encoding, np.array([1.0]), np.array([1.5])) == pytest.approx(0.25)


def test_a_sign_that_stands_as_a_token_counts_as_kept() -> None:
    for subject in subjects():
        share = values.exact_share(subject, DECIMALS)
        expected = {"xval": 0.0, "fone-log": share}.get(subject.name, 100.0)
        assert share == expected, subject.name


def test_figures_of_the_shipped_dataset(figures: Figures) -> None:
    """What the paper says of the encodings, as far as it holds."""
    names = [*ENCODINGS]
    assert list(figures) == [measure.name for measure in MEASURES]
    assert _row(figures, "tokens a number", ["bittoken", "xval", "base10"]) == [1, 1, 1]
    assert 1 < (figures["tokens a number"]["fone"] or 0) < 1.5
    exact = _row(figures, "exact, dataset %", ["bittoken", "fone", "base10", "digit", "subword"])
    assert exact == [100] * 5
    assert (figures["exact, dataset %"]["xval"] or 0) < 1
    assert _row(figures, "digits, worst", ["bittoken", "fone", "base10"]) == [17] * 3
    for row in ("after RMSNorm %", "in bf16 %", "in FP8 %"):
        kept = [name for name in names if (figures[row][name] or 0) > 99]
        assert kept == [name for name in names if name != "xval"]
    assert figures["RMS, smallest"]["bittoken"] == figures["RMS, largest"]["bittoken"]
    assert figures["trained score %"] == {s.name: None for s in subjects()} | {"fone": 12.5}


def test_a_spelling_has_no_figures_of_vectors(figures: Figures) -> None:
    for measure in MEASURES:
        empty = measure.desideratum in ("D3", "D5", "D6", "D7", "D8", "D9")
        assert (figures[measure.name]["subword"] is None) == empty, measure


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    percent = next(measure for measure in MEASURES if measure.form == "percent")
    assert [shown(percent, figure) for figure in (0, 1e-9, 50, 99.999, 100, None)] == [
        "0.0",
        "0.1",
        "50.0",
        "99.9",
        "100.0",
        "",
    ]


def test_numbers_are_operands_and_numeric_answers() -> None:
    dataset = open_dataset("v1")
    numbers = numbers_of(dataset)
    items = [item for listed in dataset.by_task.values() for item in listed]
    expected = [text for item in items for text in item.operands]
    expected += [item.answer for item in items if isinstance(item.answer, str)]
    expected += [text for item in items if not isinstance(item.answer, str) for text in item.answer]
    assert sorted(numbers.texts) == sorted(text for text in expected if text not in "ABCDEF")
    assert set(numbers.values.tolist()) == {float(text) for text in numbers.texts}
    assert np.isfinite(numbers.random).all() and len(numbers.random) > 19_000


def test_published_counts_are_the_file_s() -> None:
    found = published_counts()
    assert list(found) == ["MinMax", "Interval", "Sorting", "Add", "Mult", "Div"]
    assert str(found["Sorting"]["digit"]) == "60.0 + 58.0"
    assert str(found["Div"]["bittoken"]) == "6.1 + 2.0"


def test_measured_counts_are_means_over_items() -> None:
    found = measured_counts(open_dataset("v1"))
    assert len(found) == 9 and all(list(row) == list(COLUMNS.values()) for row in found.values())
    assert str(found["Mult"]["bittoken"]) == "5.0 + 2.0"
    assert found["Interval"]["fone"].output == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("encoding,task\nfone,x\n", "no column score"),
        ("encoding,task,score\nbits,x,1\n", "line 2: unknown encoding 'bits'"),
        ("encoding,task,score\nfone,x,1\nfone,y,nan\n", "line 3: score 'nan'"),
        ("encoding,task,score\nfone,x,101\n", "line 2: score '101'"),
        ("encoding,task,score\nfone,x,-1\n", "line 2: score '-1'"),
        ("encoding,task,score\nfone,x\n", "line 2: score None"),
        ("encoding,task,score\nfone,\udcff,1\n", "no CSV file in UTF-8"),
    ],
)
def test_a_table_of_scores_that_is_wrong_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(BadInput, match=complaint):
        read_trained(path)


def test_trained_scores_are_means_over_tasks(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        rows = [("encoding", "task", "score"), ("fone", "a", 10), ("fone", "b", 20)]
        csv.writer(file).writerows([*rows, ("digit", "a", 99.5)])
    assert read_trained(path) == {"fone": 15, "digit": 99.5}


def test_every_measure_has_a_name_of_its_own() -> None:
    assert len({measure.name for measure in table.MEASURES}) == len(table.MEASURES)


def test_magnitudes_leave_out_zero() -> None:
    numbers = Numbers([], np.array([-2.0, 0.0, 1.0, 2.0]), np.zeros(0))
    assert numbers.magnitudes.tolist() == [1, 2]
