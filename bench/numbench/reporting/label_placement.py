"""Placement of point labels: inside the axes, without covering a point or another label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_RADII = (5.0, 8.0, 12.0, 17.0, 23.0, 30.0, 38.0, 48.0, 60.0, 75.0, 95.0, 120.0, 150.0, 190.0)
_ANGLES = tuple(2 * math.pi * step / 24 for step in range(24))
_LABEL_GAP = 1.5
_MAX_ROUNDS = 5
_LINE_CROSSING_COST = 40.0
_LEADER_CROSSING_COST = 45.0
_NEAR_DOT_COST = 20.0
_NEAR_DOT_DISTANCE = 4.0
"""A label so close to another point seems to be its label."""


class Box(NamedTuple):
    """A rectangle given by two corners, in points of 1/72 inch."""

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

    def padded(self, margin: float) -> Box:
        return Box(self.left - margin, self.bottom - margin, self.right + margin, self.top + margin)

    def inside(self, other: Box) -> bool:
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.bottom <= self.bottom
            and self.top <= other.top
        )


class LabelledPoint(NamedTuple):
    """A point with a label, and the size of the label."""

    x: float
    y: float
    width: float
    height: float


Segment = tuple[tuple[float, float], tuple[float, float]]


def place_labels(
    points: Sequence[LabelledPoint], obstacles: Sequence[Box], lines: Sequence[Segment], area: Box
) -> list[Box | None]:
    """Return a box for each label, near its point; None if there is no space for it.

    Boxes never overlap each other or `obstacles`, the dots of all points, and are inside `area`;
    crossing one of the `lines`, or being close to the dot of another point, is avoided if this
    costs little distance. Earlier points are placed first, and then each again, given the boxes
    of all others.
    """
    boxes: list[Box | None] = [None] * len(points)
    for _ in range(_MAX_ROUNDS):
        before = list(boxes)
        for index, point in enumerate(points):
            others = [
                (other, box)
                for other_index, (other, box) in enumerate(zip(points, boxes, strict=True))
                if other_index != index and box is not None
            ]
            leaders = [((other.x, other.y), leader_end(other, box)) for other, box in others]
            labels = [box for _, box in others]
            boxes[index] = _cheapest_box(point, obstacles, labels, [*lines, *leaders], area)
        if boxes == before:
            break
    return boxes


def leader_end(point: LabelledPoint, box: Box) -> tuple[float, float]:
    """Return the end of the leader line: the position in the box nearest to its point."""
    return min(max(point.x, box.left), box.right), min(max(point.y, box.bottom), box.top)


def _cheapest_box(
    point: LabelledPoint,
    dots: Sequence[Box],
    labels: Sequence[Box],
    lines: Sequence[Segment],
    area: Box,
) -> Box | None:
    other_dots = [dot for dot in dots if not _contains_point(dot, point)]
    occupied = [*dots, *labels]
    best: Box | None = None
    least = math.inf
    for radius in _RADII:
        if radius >= least:
            break
        for angle in _ANGLES:
            box = _candidate(point, radius, angle)
            padded = box.padded(_LABEL_GAP)
            if not box.inside(area) or any(padded.overlaps(other) for other in occupied):
                continue
            leader = ((point.x, point.y), leader_end(point, box))
            cost = radius + _LINE_CROSSING_COST * sum(_crosses(line, box) for line in lines)
            if cost >= least:
                continue
            cost += _LEADER_CROSSING_COST * sum(
                _crosses(leader, other) for other in (*other_dots, *labels)
            )
            near = box.padded(_NEAR_DOT_DISTANCE)
            cost += _NEAR_DOT_COST * sum(near.overlaps(dot) for dot in other_dots)
            if cost < least:
                best, least = box, cost
    return best


def _candidate(point: LabelledPoint, radius: float, angle: float) -> Box:
    """Return the box at distance `radius` from the point in the direction `angle`."""
    x, y = point.x + radius * math.cos(angle), point.y + radius * math.sin(angle)
    left = x - point.width * (1 - math.cos(angle)) / 2
    bottom = y - point.height * (1 - math.sin(angle)) / 2
    return Box(left, bottom, left + point.width, bottom + point.height)


def _contains_point(box: Box, point: LabelledPoint) -> bool:
    return box.left <= point.x <= box.right and box.bottom <= point.y <= box.top


def _crosses(line: Segment, box: Box) -> bool:
    """Return whether the line crosses the box (Liang–Barsky clipping)."""
    (x0, y0), (x1, y1) = line
    if max(x0, x1) < box.left or min(x0, x1) > box.right:
        return False
    if max(y0, y1) < box.bottom or min(y0, y1) > box.top:
        return False
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
