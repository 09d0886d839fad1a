"""The figure of the desiderata: precision by magnitude, smoothness, and robustness to noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from numbench.bittoken.desiderata.encodings_under_test import (
    SEED,
    DatasetNumbers,
    EncodedNumbers,
    EncodingUnderTest,
)
from numbench.bittoken.desiderata.measures import (
    DECADES,
    mean_relative_change,
    percent_recovered_from_noise,
    precision_by_decade,
)
from numbench.bittoken.encodings.base import FloatArray
from numbench.plot_style import PALETTE, plot_style, render_figure

STEPS = [10.0**power for power in np.arange(-16, 0.5, 0.5).tolist()]
SIGMAS = np.arange(0, 0.85, 0.05)
_MAX_POINTS = 2000
"""The maximum number of dataset numbers per curve, evenly spaced."""

_DASHED, _DASH_DOTTED = (0, (5, 1.5)), (0, (5, 1.5, 1.2, 1.5))
_LINE_STYLES = (
    (PALETTE[0], "-"),
    (PALETTE[5], _DASHED),
    (PALETTE[1], "-"),
    (PALETTE[4], _DASHED),
    (PALETTE[2], "-"),
    (PALETTE[3], _DASH_DOTTED),
)


def draw_figure(
    encodings: Sequence[EncodingUnderTest], numbers: DatasetNumbers
) -> dict[str, bytes]:
    """Return the figure as PNG and SVG; the bytes are reproducible."""
    with plot_style():
        single_token = [encoding for encoding in encodings if encoding.encoding]
        return render_figure(_draw(single_token, numbers))


def _draw(encodings: Sequence[EncodingUnderTest], numbers: DatasetNumbers) -> Figure:
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    precision_axes, smoothness_axes, noise_axes = figure.subplots(1, 3)
    for axes in (precision_axes, smoothness_axes, noise_axes):
        axes.grid(True)
    values = _subsample(numbers.values)
    magnitudes = _subsample(numbers.magnitudes)
    for row, (colour, line) in zip(encodings, _LINE_STYLES, strict=True):
        encoding = row.encoding
        assert encoding is not None
        style: dict[str, Any] = {"color": colour, "linestyle": line, "label": row.display}
        precision_axes.plot(DECADES, precision_by_decade(row).worst, **style)
        changes = [
            mean_relative_change(encoding, magnitudes, _perturb(magnitudes, step)) for step in STEPS
        ]
        smoothness_axes.plot(STEPS, changes, **style)
        encoded = EncodedNumbers(encoding, values)
        recovered = [percent_recovered_from_noise(encoded, float(sigma)) for sigma in SIGMAS]
        noise_axes.plot(SIGMAS, recovered, **style)
    _label_axes(
        precision_axes,
        "D4: range and precision",
        "magnitude, power of ten",
        "correct digits (worst)",
    )
    _label_axes(
        smoothness_axes,
        "D7: smoothness",
        "relative change of the value",
        "relative change of the vector",
    )
    _label_axes(noise_axes, "D8: noise", "σ of the noise (vectors: RMS 1)", "decoded correctly, %")
    smoothness_axes.set_xscale("log")
    smoothness_axes.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1])
    figure.legend(*precision_axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _label_axes(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_ylim(bottom=0)


def _perturb(magnitudes: FloatArray, step: float) -> FloatArray:
    """Change each magnitude by a random relative step, within a factor of √10 of `step`."""
    exponents = np.random.default_rng(SEED).uniform(-0.5, 0.5, len(magnitudes))
    perturbed: FloatArray = magnitudes * (1 + step * 10**exponents)
    return perturbed


def _subsample(values: FloatArray) -> FloatArray:
    return values[:: max(len(values) // _MAX_POINTS, 1)]
