"""Where the labels of points go, so that none covers another, a point, or leaves its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_RADII = (5.0, 8.0, 12.0, 17.0, 23.0, 30.0, 38.0, 48.0, 60.0, 75.0, 95.0, 120.0, 150.0, 190.0)
_ANGLES = tuple(2 * math.pi * step / 24 for step in range(24))
_GAP = 1.5
_ROUNDS = 5
_CROSSED = 40.0
_LED_ACROSS = 45.0


class Box(NamedTuple):
    """A rectangle by its lower left and upper right corner, in points of 1/72 inch."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def inside(self, other: Box) -> bool:
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.bottom <= self.bottom
            and self.top <= other.top
        )


class Mark(NamedTuple):
    """A point to label, and the size of its text."""

    x: float
    y: float
    width: float
    height: float


Segment = tuple[tuple[float, float], tuple[float, float]]


def place_labels(
    marks: Sequence[Mark], keep_clear: Sequence[Box], lines: Sequence[Segment], area: Box
) -> list[Box | None]:
    """A box for each label, near its point; None where there is no room left for it.

    Boxes never overlap each other or `keep_clear` and stay in `area`; crossing one of the
    `lines` is avoided where it costs little distance. Earlier marks choose first; then each
    chooses again, seeing where all others went.
    """
    placed: list[Box | None] = [None] * len(marks)
    for _ in range(_ROUNDS):
        before = list(placed)
        for place, mark in enumerate(marks):
            others = [
                (other, box)
                for number, (other, box) in enumerate(zip(marks, placed, strict=True))
                if number != place and box is not None
            ]
            taken = [*keep_clear, *(box for _, box in others)]
            leaders = [((other.x, other.y), anchor(other, box)) for other, box in others]
            placed[place] = _best(mark, taken, [*lines, *leaders], area)
        if placed == before:
            break
    return placed


def anchor(mark: Mark, box: Box) -> tuple[float, float]:
    """The spot of the box that is nearest to its point: where a leader line ends."""
    return min(max(mark.x, box.left), box.right), min(max(mark.y, box.bottom), box.top)


def _best(mark: Mark, taken: Sequence[Box], lines: Sequence[Segment], area: Box) -> Box | None:
    best: Box | None = None
    least = math.inf
    for radius in _RADII:
        if radius >= least:
            break
        for angle in _ANGLES:
            box = _candidate(mark, radius, angle)
            roomy = Box(box.left - _GAP, box.bottom - _GAP, box.right + _GAP, box.top + _GAP)
            if not box.inside(area) or any(roomy.overlaps(other) for other in taken):
                continue
            leader = ((mark.x, mark.y), anchor(mark, box))
            cost = radius + _CROSSED * sum(_crosses(line, box) for line in lines)
            cost += _LED_ACROSS * sum(
                _crosses(leader, other) for other in taken if not _holds(other, mark)
            )
            if cost < least:
                best, least = box, cost
    return best


def _candidate(mark: Mark, radius: float, angle: float) -> Box:
    """The box whose nearest spot lies `radius` away in the direction `angle`."""
    x, y = mark.x + radius * math.cos(angle), mark.y + radius * math.sin(angle)
    left = x - mark.width * (1 - math.cos(angle)) / 2
    bottom = y - mark.height * (1 - math.sin(angle)) / 2
    return Box(left, bottom, left + mark.width, bottom + mark.height)


def _holds(box: Box, mark: Mark) -> bool:
    return box.left <= mark.x <= box.right and box.bottom <= mark.y <= box.top


def _crosses(line: Segment, box: Box) -> bool:
    """Whether any of the line lies in the box (Liang and Barsky's clipping)."""
    (x0, y0), (x1, y1) = line
    enter, leave = 0.0, 1.0
    for delta, low, high, start in (
        (x1 - x0, box.left, box.right, x0),
        (y1 - y0, box.bottom, box.top, y0),
    ):
        if delta == 0:
            if not low <= start <= high:
                return False
            continue
        ends = sorted(((low - start) / delta, (high - start) / delta))
        enter, leave = max(enter, ends[0]), min(leave, ends[1])
    return enter <= leave
