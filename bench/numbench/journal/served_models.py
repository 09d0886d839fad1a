"""What the answers of a run say: who gave them, and whether what was asked for had an effect."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from numbench.core.texts import Sentences
from numbench.errors import printable
from numbench.records import Completion, Response, RunInfo
from numbench.thinking_text import separate_thinking

_text = Sentences(__file__)

EARLIER_SERVERS = "earlier_base_urls"
"""The setting with the addresses that the server of a run had before it moved."""

_MAX_NAMES, _MAX_NAME_LENGTH = 5, 80

_WITHOUT_REASONING = ("default", "none", "minimal")
"""The reasoning levels at which an answer without reasoning is expected."""

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

    asked: the name or route of the model that the run asks; None without a server.
    """

    def __init__(self, info: RunInfo) -> None:
        """`info`: the description of the run."""
        is_route = info.source == "imported" and "/" in info.model
        route = info.settings.get("route") or (info.model if is_route else None)
        self.asked = None if route is None else str(route)
        earlier, self._addresses = info.settings.get(EARLIER_SERVERS), list[str]()
        if isinstance(earlier, list):
            self._addresses = [*map(str, earlier), str(info.settings.get("base_url"))]
        self._effects = Effects(info.reasoning, info.settings)
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_others: Counter[bool] = Counter()

    def count(self, response: Completion) -> None:
        """Count a response, to a whole conversation once for each name in its replies.

        What it does not name, and one without an answer, does not count.
        """
        self._effects.count(response)
        replies = () if response.error else _replies(response)
        models = {str(each.served_model) for each in replies if each.served_model is not None}
        for kind, names in (
            ("models", models),
            ("providers", {each.provider for each in replies}),
            ("system fingerprints", {each.extra.get("system_fingerprint") for each in replies}),
        ):
            self._counts[kind].update(str(name) for name in names if name is not None)
        if models:
            self._by_others[any(map(self._is_other, models))] += 1

    def _is_other(self, name: str) -> bool:
        return self.asked is not None and not is_same_model(self.asked, name)

    @property
    def others(self) -> Counter[str]:
        """The number of answers by each model that is not the one asked."""
        counts = self._counts["models"].items()
        return Counter({name: n for name, n in counts if self._is_other(name)})

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
        warnings, asked, others = [], self.asked, self.others
        if self._addresses:
            warnings.append(_text("moved", addresses=", ".join(map(_shown, self._addresses))))
        if asked and others:
            answers, count = self._by_others.total(), self._by_others[True]
            about = {"asked": _shown(asked), "listed": _listed(others)}
            warnings.append(_text("other_model", answers=answers, others=count, **about))
        warnings += [
            _text("several", count=len(counts), kind=kind, listed=_listed(counts))
            for kind, counts in sorted(self._counts.items())
            if len(counts) > 1
        ]
        return warnings + self._effects.warnings


class Effects:
    """Counts the answers of a run that show whether its settings had an effect.

    Providers keep what their APIs promise, or refuse it; a server of one's own may ignore a
    setting that it or its model does not know.
    """

    def __init__(self, level: str, settings: Mapping[str, Any]) -> None:
        """level, settings: the reasoning level and the settings in `run.json`."""
        self._level, self._settings = level, settings
        self._is_own_server = bool(settings.get("base_url"))
        self._expects_reasoning = self._is_own_server and level not in _WITHOUT_REASONING
        self._is_structured = bool(settings.get("structured"))
        self._temperature = settings.get("temperature")
        self._counts: Counter[str] = Counter()
        self._first: dict[str, tuple[int, int]] = {}
        self._repeated: dict[str, bool] = {}

    def count(self, response: Completion) -> None:
        """Count an answer, once for its conversation. If cut off, it need not be complete JSON."""
        if response.error is not None or response.finish_reason == "refusal":
            return
        counts, text = self._counts, response.text
        counts["answers"] += 1
        counts["calls"] += sum(len(reply.calls) for reply in _replies(response))
        if self._expects_reasoning or self._is_structured:
            text, thinking, _ = separate_thinking(response.text)
            shown = any(each.usage.reasoning or each.reasoning_text for each in _replies(response))
            counts["with_reasoning"] += shown or bool(thinking)
        is_cut_off = response.finish_reason == "length"
        if is_cut_off:
            counts["cut_off"] += 1
            counts["longest"] = max(counts["longest"], response.usage.generated or 0)
        if self._is_structured and (start := text.lstrip()[:1]):
            counts["checked"] += 1
            counts["unstructured"] += start != "{" if is_cut_off else not _is_json(text)
        if self._temperature and isinstance(response, Response):
            item, sample = response.item_id, (response.sample, hash(response.text))
            first = self._first.setdefault(item, sample)
            # A sample that is asked again is no other sample.
            if first[0] != sample[0]:
                self._repeated[item] = first[1] == sample[1] and self._repeated.get(item, True)

    @property
    def warnings(self) -> list[str]:
        """A warning for each setting without the effect that it should have."""
        counts, is_own, repeated = self._counts, self._is_own_server, self._repeated
        tools, limit = (self._settings.get(name) for name in ("tools", "max_tokens"))
        is_missing = {
            "unstructured": counts["unstructured"],
            "no_reasoning": self._expects_reasoning and counts["with_reasoning"] == 0,
            "no_calls": is_own and tools and counts["calls"] == 0,
            "identical": is_own and repeated and all(repeated.values()),
            "cut_off": is_own and limit is None and counts["cut_off"],
        }
        about = {"level": self._level, "tools": tools, "temperature": self._temperature}
        return [
            _text(name, **counts, **about, repeated=len(repeated))
            for name, is_shown in is_missing.items()
            if is_shown and counts["answers"]
        ]


def _replies(response: Completion) -> tuple[Completion, ...]:
    """Return all replies of a conversation."""
    return (*response.turns, response) if isinstance(response, Response) else (response,)


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _shown(name: str) -> str:
    shown = printable(name[:_MAX_NAME_LENGTH])
    return f"{shown}…" if len(name) > _MAX_NAME_LENGTH else shown


def _listed(counts: Counter[str]) -> str:
    listed = [f"{_shown(name)} ({count:,})" for name, count in _ordered(counts)[:_MAX_NAMES]]
    rest = len(counts) - _MAX_NAMES
    return ", ".join(listed + ([f"and {rest} more"] if rest > 0 else []))


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object with an answer and nothing else."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw]).keys() == {"answer"}
    return False
