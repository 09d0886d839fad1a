"""The figure of the desiderata: precision by magnitude, smoothness, and robustness to noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bittoken.desiderata.encoding_under_test import (
    DECADES,
    SEED,
    DatasetNumbers,
    EncodingUnderTest,
)
from bittoken.desiderata.measures import percent_recovered_from_noise, relative_change
from bittoken.encodings.base import FloatArray
from numbench.plot_style import FULL_WIDTH, LINE_PATTERNS, PALETTE, plot_style, render_figure

POWERS = np.arange(-16.0, 1.0)
SIGMAS = np.arange(0, 0.85, 0.05)
_MAX_VALUES = 2000
"""The maximum number of dataset numbers per curve, evenly spaced."""

_SHOWN_DECADES = (-40, 25)
"""Beyond, the digits of no encoding change."""


def draw_figure(tested: Sequence[EncodingUnderTest]) -> dict[str, bytes]:
    """Return the figure as PNG and SVG; the bytes are reproducible."""
    with plot_style():
        return render_figure(_draw([encoding for encoding in tested if encoding.has_vectors]))


def _draw(tested: Sequence[EncodingUnderTest]) -> Figure:
    rows = -(-len(tested) // 4)
    figure = Figure(figsize=(FULL_WIDTH, 2.6 + 0.16 * rows), layout="constrained")
    precision, smoothness, noise = figure.subplots(1, 3)
    for index, encoding in enumerate(tested):
        # Both cycles advance together, so that curves that coincide remain visible.
        line: dict[str, Any] = {
            "color": PALETTE[index % len(PALETTE)],
            "linestyle": LINE_PATTERNS[(index + index // len(PALETTE)) % len(LINE_PATTERNS)],
        }
        thinned = EncodingUnderTest(encoding.name, _thinned(encoding.numbers))
        magnitudes = thinned.numbers.magnitudes
        precision.plot(DECADES, encoding.digits_by_decade, label=encoding.display, **line)
        changes = [relative_change(thinned, _perturbed(magnitudes, power)) for power in POWERS]
        smoothness.plot(POWERS, changes, **line)
        recovered = [percent_recovered_from_noise(thinned, float(sigma)) for sigma in SIGMAS]
        noise.plot(SIGMAS, recovered, **line)
    precision.set_xlim(_SHOWN_DECADES)
    for axes, title, x_label, y_label in (
        (precision, "D4: range and precision", "power of ten of the number", "digits (worst)"),
        (smoothness, "D7: smoothness", "power of ten of the change", "change of the vector"),
        (noise, "D8: noise", "σ of the noise", "decoded correctly, %"),
    ):
        axes.set_title(title, loc="left")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_ylim(bottom=0)
        axes.grid(True)
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _perturbed(magnitudes: FloatArray, power: float) -> FloatArray:
    """Return magnitudes increased by random relative changes around 10^power, within √10."""
    exponents = np.random.default_rng(SEED).uniform(-0.5, 0.5, len(magnitudes))
    perturbed: FloatArray = magnitudes * (1 + 10 ** (power + exponents))
    return perturbed


def _thinned(numbers: DatasetNumbers) -> DatasetNumbers:
    step = max(len(numbers.values) // _MAX_VALUES, 1)
    return numbers._replace(values=numbers.values[::step])
