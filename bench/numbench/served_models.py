"""Who answered a run: the models, providers and system versions that its responses name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from numbench.errors import printable
from numbench.records import Completion

_MAX_NAMES = 5


class ServedModels:
    """Counts the answers of a run by the model, provider and system fingerprint that they name."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count(self, response: Completion) -> None:
        """Count a response. What it does not name, and one without an answer, does not count."""
        names = {
            "models": response.served_model,
            "providers": response.provider,
            "system fingerprints": response.extra.get("system_fingerprint"),
        }
        for kind, name in names.items():
            if name is not None and response.error is None:
                self._counts[kind][str(name)] += 1

    @property
    def warnings(self) -> list[str]:
        """A warning for each of model, provider and system fingerprint that changes in the run."""
        warnings = []
        for kind, counts in sorted(self._counts.items()):
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            listed = [f"{printable(name)} ({count:,})" for name, count in ordered[:_MAX_NAMES]]
            if len(ordered) > _MAX_NAMES:
                listed.append(f"and {len(ordered) - _MAX_NAMES} more")
            if len(ordered) > 1:
                warnings.append(f"the answers come from {len(ordered)} {kind}: {', '.join(listed)}")
        return warnings


def drift_warnings(responses: Iterable[Completion]) -> list[str]:
    """Return the warnings of `ServedModels` for some responses."""
    served = ServedModels()
    for response in responses:
        served.count(response)
    return served.warnings
