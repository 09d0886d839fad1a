"""Notes that tell runs of one model and level apart by what differs between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from numbench.reporting.table_model import one_line

Facets = tuple[tuple[str, str], ...]
"""What runs may differ in, as pairs of name and text, the most telling first."""


def distinguishing_notes(names: Sequence[Hashable], facets: Sequence[Facets]) -> list[list[str]]:
    """Return, per run, the texts that distinguish it from the others with its name.

    Only what differs is in a note, and no more than is needed. Runs that differ in no facet are
    numbered in their order.
    """
    notes: list[list[str]] = [[] for _ in names]
    groups: dict[Hashable, list[int]] = {}
    for index, name in enumerate(names):
        groups.setdefault(name, []).append(index)
    for members in groups.values():
        order = list(dict.fromkeys(key for index in members for key, _ in facets[index]))
        _distinguish(members, order, [dict(one) for one in facets], notes)
    return notes


def _distinguish(
    members: Sequence[int],
    order: Sequence[str],
    facets: Sequence[dict[str, str]],
    notes: list[list[str]],
) -> None:
    if len(members) < 2:
        return
    if not order:
        for number, index in enumerate(members, 1):
            notes[index].append(f"run {number}")
        return
    groups: dict[str, list[int]] = {}
    for index in members:
        groups.setdefault(facets[index].get(order[0], ""), []).append(index)
    for text, group in groups.items():
        if text and len(groups) > 1:
            for index in group:
                notes[index].append(text)
        _distinguish(group, order[1:], facets, notes)


def time_facets(created: str) -> Facets:
    """Return the date of a run and its time of day, which `created` has in ISO 8601."""
    parts = (("date", created[:10]), ("time", created[11:19]))
    return tuple((key, one_line(text)) for key, text in parts if text)
