"""Who answered a run: the models, providers and system versions that its responses name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache

from numbench.errors import printable
from numbench.records import Completion, RunInfo

_MAX_NAMES, _MAX_NAME_LENGTH = 5, 80

_DATE = re.compile(r"[-@.](20\d\d-?[01]\d-?[0-3]\d)$")
_VERSION = re.compile(r"[-.]\d{3,4}$")
"""The date of a snapshot, and the short date or number of a version, such as `0905` or `001`."""


@lru_cache(maxsize=256)
def is_same_model(asked: str, served: str) -> bool:
    """Return whether an answer by `served` is one of the model `asked`, as names can tell.

    A provider's prefix, a folder, a revision (`NAME@main`), a tag that only one of them has
    (`:free`), the date of a snapshot of the model, and the order of the words make no difference.
    """
    (name, *details), (other, *other_details) = _parts(asked), _parts(served)
    if any(a and b and a != b for a, b in zip(details, other_details, strict=True)):
        return False
    return _words(name) in (_words(other), _words(_VERSION.sub("", other)))


def _parts(name: str) -> tuple[str, str, str]:
    """Return the last component of a model's name, its tag and its date."""
    last = name.lower().replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    last, _, tag = last.partition(":")
    day = _DATE.search(last)
    return _DATE.sub("", last).partition("@")[0], tag, day[1].replace("-", "") if day else ""


def _words(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a name in alphabetical order, and its numbers in their own."""
    return sorted(re.findall(r"[a-z]+", name)), re.findall(r"\d+", name)


class ServedModels:
    """Counts the answers of a run by the model, provider and system fingerprint that they name.

    asked: the name or route of the model that the run asks; None if that is no server's.
    """

    def __init__(self, asked: str | None = None) -> None:
        self.asked = asked
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count(self, response: Completion) -> None:
        """Count a response. What it does not name, and one without an answer, does not count."""
        if response.error is not None:
            return
        for kind, name in (
            ("models", response.served_model),
            ("providers", response.provider),
            ("system fingerprints", response.extra.get("system_fingerprint")),
        ):
            if name is not None:
                self._counts[kind][str(name)] += 1

    @property
    def others(self) -> Counter[str]:
        """The number of answers by each model that is not the one asked."""
        asked, counts = self.asked, self._counts["models"].items()
        return Counter({name: n for name, n in counts if asked and not is_same_model(asked, name)})

    @property
    def answered_by(self) -> str:
        """What to add to the name of the model asked; empty if no other model answered."""
        if not (others := _ordered(self.others)):
            return ""
        is_all = self.others.total() == self._counts["models"].total()
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return f"{'' if is_all else 'partly '}answered by {_shown(others[0][0])}{more}"

    @property
    def warnings(self) -> list[str]:
        """A warning for another model than the one asked, and for each name that changes."""
        warnings = []
        if self.asked and (others := self.others):
            warnings.append(
                f"asked for {_shown(self.asked)}, but {others.total():,} of "
                f"{self._counts['models'].total():,} answers name another model: {_listed(others)}"
            )
        return warnings + [
            f"the answers come from {len(counts)} {kind}: {_listed(counts)}"
            for kind, counts in sorted(self._counts.items())
            if len(counts) > 1
        ]


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _shown(name: str) -> str:
    shown = printable(name[:_MAX_NAME_LENGTH])
    return f"{shown}…" if len(name) > _MAX_NAME_LENGTH else shown


def _listed(counts: Counter[str]) -> str:
    listed = [f"{_shown(name)} ({count:,})" for name, count in _ordered(counts)[:_MAX_NAMES]]
    rest = len(counts) - _MAX_NAMES
    return ", ".join(listed + ([f"and {rest} more"] if rest > 0 else []))


def served_models(info: RunInfo, responses: Iterable[Completion | None]) -> ServedModels:
    """Return who answered a run with these responses."""
    is_route = info.source == "imported" and "/" in info.model
    route = info.settings.get("route") or (info.model if is_route else None)
    served = ServedModels(None if route is None else str(route))
    for response in filter(None, responses):
        served.count(response)
    return served
