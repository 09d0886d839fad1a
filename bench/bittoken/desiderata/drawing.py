"""The figure: precision over magnitudes, smoothness, and decoding under noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.bittoken.desiderata.subjects import SEED, Numbers, Subject, Vectored
from bench.bittoken.desiderata.values import DECADES, precision
from bench.bittoken.desiderata.vectors import mean_change, noisy_share
from bench.bittoken.drawing import house_style, rendered
from bench.bittoken.encodings.base import Floats

STEPS = [10.0**power for power in np.arange(-16, 0.5, 0.5).tolist()]
SIGMAS = np.arange(0, 0.85, 0.05)
_SHOWN = 2000
"""Numbers of the dataset that the curves of vectors are drawn from, evenly chosen."""

_LOOKS = (
    ("#0072B2", "-"),
    ("#56B4E9", (0, (5, 1.5))),
    ("#D55E00", "-"),
    ("#E69F00", (0, (5, 1.5))),
    ("#009E73", "-"),
    ("#CC79A7", (0, (5, 1.5, 1.2, 1.5))),
)


def drawn(listed: Sequence[Subject], numbers: Numbers) -> dict[str, bytes]:
    """The figure as PNG and SVG; the same bytes for the same numbers."""
    with house_style():
        return rendered(_draw([subject for subject in listed if subject.encoding], numbers))


def _draw(listed: Sequence[Subject], numbers: Numbers) -> Figure:
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes in (left, middle, right):
        axes.grid(True)
    values = _thinned(numbers.values)
    magnitudes = _thinned(numbers.magnitudes)
    for subject, (colour, line) in zip(listed, _LOOKS, strict=True):
        encoding = subject.encoding
        assert encoding is not None
        look: dict[str, Any] = {"color": colour, "linestyle": line, "label": subject.display}
        left.plot(DECADES, precision(subject).worst, **look)
        changes = [mean_change(encoding, magnitudes, _moved(magnitudes, step)) for step in STEPS]
        middle.plot(STEPS, changes, **look)
        vectored = Vectored(encoding, values)
        right.plot(SIGMAS, [noisy_share(vectored, float(sigma)) for sigma in SIGMAS], **look)
    _name(left, "D4: range and precision", "magnitude, power of ten", "correct digits (worst)")
    _name(middle, "D7: smoothness", "relative change of the value", "relative change of the vector")
    _name(right, "D8: noise", "σ of the noise (vectors: RMS 1)", "decoded right, %")
    middle.set_xscale("log")
    middle.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _name(axes: Axes, title: str, below: str, beside: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(below)
    axes.set_ylabel(beside)
    axes.set_ylim(bottom=0)


def _moved(magnitudes: Floats, step: float) -> Floats:
    """Each by a relative step of its own, up to a factor of √10 around `step`."""
    draws = np.random.default_rng(SEED).uniform(-0.5, 0.5, len(magnitudes))
    moved: Floats = magnitudes * (1 + step * 10**draws)
    return moved


def _thinned(values: Floats) -> Floats:
    return values[:: max(len(values) // _SHOWN, 1)]
