"""How long to wait, read from a response's headers. What is malformed counts as absent."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from msgspec.structs import replace

from bench.records import Completion

_PASSED_ON = "llm_provider-"
"""What litellm puts before the name of a provider's header."""

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class _Limit(NamedTuple):
    """One limit: the headers that say what is left of it and when it is filled up again."""

    remaining: str
    reset: str
    seconds: Callable[[str], float | None]


def retry_after(headers: Mapping[str, object]) -> float | None:
    """Seconds that a server which refused for now asks to wait: what it says outright, else the
    longest reset of the limits that are exhausted, or may be.
    """
    given = _plain(headers)
    said = _seconds_or_date(given.get("retry-after", ""))
    if said is None:
        said = seconds_of(given.get("retry-after-ms", ""), 0.001)
    if said is not None:
        return said
    resets = [
        limit.seconds(given.get(limit.reset, ""))
        for limit in _LIMITS
        if limit.remaining not in given or _exhausted(given, limit)
    ]
    return max((seconds for seconds in resets if seconds is not None), default=None)


def hold_back(headers: Mapping[str, object]) -> float | None:
    """Seconds until the limits are filled up again that a good response says are now exhausted.

    None where none is.
    """
    given = _plain(headers)
    resets = [
        limit.seconds(given.get(limit.reset, "")) for limit in _LIMITS if _exhausted(given, limit)
    ]
    return max((seconds for seconds in resets if seconds), default=None)


def with_hold_back(completion: Completion, headers: Mapping[str, object]) -> Completion:
    """`completion`, its `extra["hold_back"]` the seconds of `hold_back` where there are any."""
    seconds = hold_back(headers)
    if seconds is None:
        return completion
    return replace(completion, extra=completion.extra | {"hold_back": seconds})


def _plain(headers: Mapping[str, object]) -> dict[str, str]:
    """The headers under the provider's own names, in small letters."""
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    passed_on = {
        name.removeprefix(_PASSED_ON): value
        for name, value in named.items()
        if name.startswith(_PASSED_ON)
    }
    return passed_on | named


def _exhausted(given: Mapping[str, str], limit: _Limit) -> bool:
    return seconds_of(given.get(limit.remaining, "")) == 0


def seconds_of(text: str, unit: float = 1.0) -> float | None:
    """A number of seconds, None where the text holds none that can be waited for."""
    try:
        seconds = float(text) * unit
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_or_date(text: str) -> float | None:
    seconds = seconds_of(text)
    if seconds is not None:
        return seconds
    try:
        return _until(parsedate_to_datetime(text))
    except (ValueError, OverflowError):
        return None


def _duration(text: str) -> float | None:
    """`6m0s`, `20ms`, `1h2m`, or a plain number of seconds."""
    if not _DURATION.fullmatch(text):
        return seconds_of(text)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return seconds if math.isfinite(seconds) else None


def _epoch_milliseconds(text: str) -> float | None:
    moment = seconds_of(text, 0.001)
    return None if moment is None else _ahead(moment - time.time())


def _timestamp(text: str) -> float | None:
    """RFC 3339."""
    try:
        return _until(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime) -> float | None:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _ahead((aware - datetime.now(UTC)).total_seconds())


def _ahead(seconds: float) -> float | None:
    """A moment that has passed says nothing of how long to wait."""
    return seconds if seconds > 0 else None


_LIMITS = (
    *(
        _Limit(f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}", _duration)
        for what in ("requests", "tokens")
    ),
    _Limit("x-ratelimit-remaining", "x-ratelimit-reset", _epoch_milliseconds),
    *(
        _Limit(
            f"anthropic-ratelimit-{what}-remaining", f"anthropic-ratelimit-{what}-reset", _timestamp
        )
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
)
