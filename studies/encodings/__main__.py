"""Write results/encodings: python -m studies.encodings.

The paper's desiderata: D1 one token, D2 uniqueness, D3 order, D4 range and precision, D5 scale, D6
low precision, D7 smoothness, D8 robustness to noise, D9 learnability.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bittoken.encodings import DIGITS_PER_TOKEN, ENCODINGS
from bittoken.encodings.base import Codes, NumberEncoding
from bittoken.encodings.fone import FoNE
from numbench.dataset.store import open_dataset
from numbench.plot_style import FULL_WIDTH, LINE_PATTERNS, PALETTE
from numbench.records import Item
from studies.pages import fill, markdown_table, svg_figure, write_files
from studies.products.__main__ import RESULTS as PRODUCTS
from studies.products.__main__ import final, read_logs

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

RESULTS = Path("results/encodings")
SHOWN = ("bittoken", "bittoken-no-reciprocal", "fone", "xval", "base10", "digit", "subword")

SEED = 1
RANDOM_COUNT = 20_000
"""The number of random float64, and of random pairs of numbers."""

DECADES = np.arange(-324, 309)
NUMBERS_PER_DECADE = 40
MAX_DIGITS = 17.0
"""Correct significant digits of a value that is recovered exactly."""

MIN_CORRECT_DIGITS = 3
NETWORK_WIDTH = 768
"""The width of the paper's network, to which vectors are padded with zeros."""

EPSILON = 1e-6


class Numbers(NamedTuple):
    """The numbers of a dataset: as printed, and the distinct values; and random float64."""

    texts: list[str]
    values: Floats
    random: Floats

    @property
    def magnitudes(self) -> Floats:
        """The distinct nonzero absolute values, ascending."""
        return np.unique(np.abs(self.values[self.values != 0]))


def dataset_numbers(items: Iterable[Item]) -> Numbers:
    """Return the operands and numeric answers of items."""
    texts: list[str] = []
    for item in items:
        answers = item.answer if isinstance(item.answer, tuple) else (item.answer,)
        texts += [*item.operands, *(answer for answer in answers if not answer.isalpha())]
    bits = np.random.default_rng(SEED).integers(0, 2**64, RANDOM_COUNT, dtype=np.uint64)
    random = bits.view(np.float64)
    return Numbers(texts, np.unique(np.array(texts, np.float64)), random[np.isfinite(random)])


def vectors_of(encoding: NumberEncoding, codes: Codes) -> Vectors:
    """Return the vectors of codes."""
    vectors: Vectors = encoding.vector(torch.from_numpy(codes)).numpy()
    return vectors


def nearest_codes(encoding: NumberEncoding, vectors: Vectors) -> Codes:
    """Return the codes whose vectors are nearest."""
    if not isinstance(encoding, FoNE):
        outputs = torch.from_numpy(np.ascontiguousarray(vectors[:, : encoding.outputs]))
        predicted: Codes = encoding.predict(outputs).numpy()
        return predicted
    # Each phase minus the contribution of the lower digits is a multiple of a tenth of a turn.
    points = vectors.reshape(len(vectors), encoding.columns, 2).astype(np.float64)
    tenths = np.arctan2(points[:, :, 1], points[:, :, 0]) * (10 / (2 * np.pi))
    codes, lower = np.empty(points.shape[:2], np.int8), np.zeros(len(vectors))
    for column in reversed(range(encoding.columns)):
        digit = np.rint(tenths[:, column] - lower) % 10
        codes[:, column] = digit
        lower = (digit + lower) / 10
    return codes


def round_trip(encoding: NumberEncoding, values: Floats) -> Floats:
    """Convert values to vectors and back; a sign without a channel is a token of its own."""
    vectors = vectors_of(encoding, encoding.encode(values))
    decoded = encoding.decode(nearest_codes(encoding, vectors))
    return decoded if encoding.signed else np.copysign(decoded, values)


def correct_digits(encoding: NumberEncoding, values: Floats) -> Floats:
    """Return −log10 of the relative error of nonzero values, between 0 and 17 (exact)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        error = np.abs((round_trip(encoding, values) - values) / values)
        digits = np.where(error == 0, MAX_DIGITS, -np.log10(error))
    clipped: Floats = np.clip(np.nan_to_num(digits, nan=0.0), 0.0, MAX_DIGITS)
    return clipped


def digits_by_decade(encoding: NumberEncoding) -> Floats:
    """Return the minimum of correct digits over random numbers of 17 digits in each decade."""
    shape = (len(DECADES), NUMBERS_PER_DECADE)
    significands = np.random.default_rng(SEED).integers(10**16, 10**17, shape)
    values = np.array(
        [
            [float(f"{significand}e{decade - 16}") for significand in row]
            for decade, row in zip(DECADES.tolist(), significands.tolist(), strict=True)
        ]
    )
    is_valid = (values > 0) & np.isfinite(values)
    digits = np.full(shape, np.inf)
    digits[is_valid] = correct_digits(encoding, values[is_valid])
    return np.where(is_valid.any(axis=1), digits.min(axis=1), np.nan)


def order(encoding: NumberEncoding, magnitudes: Floats, scale: Callable[[Floats], Floats]) -> float:
    """Return Spearman's correlation of the distances of vectors and of scaled magnitudes."""
    first, second = np.random.default_rng(SEED).integers(0, len(magnitudes), (2, RANDOM_COUNT))
    vectors = vectors_of(encoding, encoding.encode(magnitudes)).astype(np.float64)
    distances = np.linalg.norm(vectors[first] - vectors[second], axis=1)
    scaled = scale(magnitudes)
    return float(spearmanr(distances, np.abs(scaled[first] - scaled[second])).statistic)


def rms(vectors: Vectors) -> Floats:
    """Return the RMS of each vector at the network's width."""
    squares = np.square(vectors, dtype=np.float64).sum(axis=1)
    result: Floats = np.sqrt(squares / max(NETWORK_WIDTH, vectors.shape[1]))
    return result


def normalized(vectors: Vectors, is_centered: bool) -> Vectors:
    """Return the vectors after LayerNorm (centered) or RMSNorm at the network's width."""
    sums = vectors.sum(axis=1, dtype=np.float64, keepdims=True)
    means = is_centered * sums / max(NETWORK_WIDTH, vectors.shape[1])
    variances = rms(vectors)[:, None] ** 2 - means**2
    result: Vectors = ((vectors - means) / np.sqrt(variances + EPSILON)).astype(np.float32)
    return result


def rounded(vectors: Vectors, dtype: torch.dtype) -> Vectors:
    """Return the vectors rounded to a type of lower precision."""
    result: Vectors = torch.from_numpy(vectors).to(dtype).to(torch.float32).numpy()
    return result


def noisy(vectors: Vectors, sigma: float) -> Vectors:
    """Return the vectors with Gaussian noise, relative to the RMS of all of them."""
    scale = sigma * np.sqrt(np.square(vectors.astype(np.float64)).mean())
    noise = np.random.default_rng(SEED).standard_normal(vectors.shape) * scale
    result: Vectors = (vectors + noise).astype(np.float32)
    return result


def relative_change(encoding: NumberEncoding, before: Floats, after: Floats) -> float:
    """Return the mean distance of the vectors of two values, relative to the first vector."""
    first, second = (vectors_of(encoding, encoding.encode(values)) for values in (before, after))
    length = np.linalg.norm(first, axis=1)
    distance = np.linalg.norm(second - first, axis=1)
    return float((distance[length > 0] / length[length > 0]).mean())


def measure_vectors(encoding: NumberEncoding, numbers: Numbers) -> dict[str, str]:
    """Return the measures of an encoding with one token per number."""
    values, magnitudes = numbers.values, numbers.magnitudes
    codes = encoding.encode(values)
    vectors = vectors_of(encoding, codes)
    digits = correct_digits(encoding, magnitudes)
    precise = DECADES[digits_by_decade(encoding) >= MIN_CORRECT_DIGITS]
    signs = 0 if encoding.signed else np.mean([text.startswith("-") for text in numbers.texts])

    def recovered(changed: Vectors) -> str:
        return percent((nearest_codes(encoding, changed) == codes).all(axis=1))

    def change(after: Floats) -> str:
        return f"{relative_change(encoding, magnitudes, after):.2g}"

    return {
        "D1 tokens per number": f"{1 + signs:.2f}",
        "D2 exact, dataset, %": percent(round_trip(encoding, values) == values),
        "D2 exact, float64, %": percent(round_trip(encoding, numbers.random) == numbers.random),
        "D3 ρ with ratios": f"{order(encoding, magnitudes, np.log10):.2f}",
        "D3 ρ with differences": f"{order(encoding, magnitudes, np.positive):.2f}",
        "D4 range": f"1e{precise.min()} to 1e{precise.max()}",
        "D4 digits, worst": f"{digits.min():.2f}",
        "D5 RMS": f"{rms(vectors).min():.2f} to {rms(vectors).max():.2f}",
        "D5 after RMSNorm, %": recovered(normalized(vectors, False)),
        "D5 after LayerNorm, %": recovered(normalized(vectors, True)),
        "D6 in bf16, %": recovered(rounded(vectors, torch.bfloat16)),
        "D6 in FP8, %": recovered(rounded(vectors, torch.float8_e4m3fn)),
        "D7 change, next float64": change(np.nextafter(magnitudes, np.inf)),
        "D7 change, 1% more": change(magnitudes * 1.01),
        **{f"D8 noise σ = {s}, %": recovered(noisy(vectors, s)) for s in (0.1, 0.3, 0.5)},
    }


def measure_text(digits_per_token: int, numbers: Numbers) -> dict[str, str]:
    """Return the measures of an encoding that writes a number as text, which is always exact."""
    token = re.compile(rf"[0-9]{{1,{digits_per_token}}}|[-.]")
    counts = [len(token.findall(text)) for text in numbers.texts]
    return {
        "D1 tokens per number": f"{np.mean(counts):.2f}",
        "D2 exact, dataset, %": "100.0",
        "D2 exact, float64, %": "100.0",
        "D4 range": f"1e{DECADES[0]} to 1e{DECADES[-1]}",
        "D4 digits, worst": f"{MAX_DIGITS:.2f}",
    }


def percent(correct: NDArray[np.bool_]) -> str:
    """Return a share in percent; 99.96 is never printed as 100.0, nor 0.04 as 0.0."""
    share = 100 * float(correct.mean())
    return f"{min(max(share, 0.1), 99.9) if 0 < share < 100 else share:.1f}"


def learned() -> dict[str, str]:
    """Return D9, the exact match on 8-bit products after the same number of questions."""
    logs = read_logs(PRODUCTS / "runs").query("task == 'multiplication'")
    runs = logs.groupby(["encoding", "run"])[["exact"]].apply(final)
    return {str(name): f"{value:.1f}" for name, value in runs.groupby("encoding").mean().items()}


def draw(files: dict[str, bytes], numbers: Numbers) -> None:
    """Draw precision by magnitude, smoothness, and robustness to noise."""
    numbers = numbers._replace(values=numbers.values[:: max(len(numbers.values) // 2000, 1)])
    values, magnitudes = numbers.values, numbers.magnitudes
    powers, sigmas = np.arange(-16.0, 1.0), np.arange(0, 0.85, 0.05)
    spread = np.random.default_rng(SEED).uniform(-0.5, 0.5, len(magnitudes))
    with svg_figure(files, "desiderata.svg", (FULL_WIDTH, 2.7)) as figure:
        precision, smoothness, noise = figure.subplots(1, 3)
        for index, name in enumerate(name for name in SHOWN if name in ENCODINGS):
            encoding = ENCODINGS[name]
            line = {"color": PALETTE[index], "linestyle": LINE_PATTERNS[(index + index // 4) % 4]}
            precision.plot(DECADES, digits_by_decade(encoding), label=encoding.display, **line)
            changed = (magnitudes * (1 + 10 ** (power + spread)) for power in powers)
            changes = [relative_change(encoding, magnitudes, after) for after in changed]
            smoothness.plot(powers, changes, **line)
            codes = encoding.encode(values)
            vectors = vectors_of(encoding, codes)
            kept = [
                100 * (nearest_codes(encoding, noisy(vectors, s)) == codes).all(axis=1).mean()
                for s in sigmas
            ]
            noise.plot(sigmas, kept, **line)
        precision.set_xlim(-40, 25)
        for axes, title, x_label, y_label in (
            (precision, "D4: range and precision", "log10 of the number", "correct digits (worst)"),
            (smoothness, "D7: smoothness", "log10 of the change", "change of the vector"),
            (noise, "D8: noise", "σ of the noise", "decoded correctly, %"),
        ):
            axes.set_title(title, loc="left")
            axes.set(xlabel=x_label, ylabel=y_label)
            axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower center", ncols=5)


def render(dataset: str = "v1", items_per_task: int | None = None) -> dict[str, bytes]:
    """Return the page and its figure, by name."""
    by_task = open_dataset(dataset).by_task.values()
    numbers = dataset_numbers(item for items in by_task for item in items[:items_per_task])
    scores = learned()
    columns = {}
    for name in SHOWN:
        if name in ENCODINGS:
            title, measures = ENCODINGS[name].display, measure_vectors(ENCODINGS[name], numbers)
        else:
            title, measures = name.title(), measure_text(DIGITS_PER_TOKEN[name], numbers)
        columns[title] = measures | {"D9 learned, %": scores.get(name, "not trained")}
    table = pd.DataFrame(columns).fillna("no vectors")
    files: dict[str, bytes] = {}
    draw(files, numbers)
    values = {"table": markdown_table(table), "dataset": dataset, "count": f"{RANDOM_COUNT:,}"}
    return {"README.md": fill(Path(__file__).with_name("page.md"), values), **files}


if __name__ == "__main__":
    write_files(RESULTS, render())
