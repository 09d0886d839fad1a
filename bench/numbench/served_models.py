"""Who answered a run: the models, providers and system versions that its responses name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from numbench.errors import printable
from numbench.records import Completion

_MAX_NAMES = 5


def drift_warnings(responses: Iterable[Completion]) -> list[str]:
    """Return a warning for each of model, provider and system fingerprint that changes in a run.

    Responses that do not name one, and those without an answer, do not count.
    """
    counts: dict[str, Counter[str]] = {
        "models": Counter(),
        "providers": Counter(),
        "system fingerprints": Counter(),
    }
    for response in responses:
        if response.error is not None:
            continue
        fingerprint = response.extra.get("system_fingerprint")
        names = (response.served_model, response.provider, fingerprint)
        for counter, name in zip(counts.values(), names, strict=True):
            if name is not None:
                counter[str(name)] += 1
    return [
        f"the answers come from {len(counter)} {kind}: {_listed(counter)}"
        for kind, counter in counts.items()
        if len(counter) > 1
    ]


def _listed(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{printable(name)} ({count:,})" for name, count in ordered[:_MAX_NAMES]]
    omitted = len(counter) - len(names)
    return ", ".join(names) + (f", and {omitted} more" if omitted else "")
