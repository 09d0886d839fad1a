"""What the bodies of errors say, whatever their shape: codes, a message, and how long to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from numbench.models.json_fields import FIELDS, JsonObject, object_at, objects_at, text_or_repr

_MAX_DEPTH, _MAX_OBJECTS = 6, 50
MAX_TEXT = 4_000
"""Characters of codes and messages that are read: some patterns take quadratic time."""

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FIRST_TIMESTAMP, _FIRST_MILLISECONDS = 1e9, 1e11
"""From these numbers on, a number is one of seconds, and of milliseconds, since 1970."""

_WAITS = {"retry-after": "s", "retry-after-ms": "ms"}
"""The headers with the time to wait, and their units."""

_RESET = re.compile("(x|anthropic)-ratelimit-(.+-)?reset(-.+)?")
"""The headers with the reset of a limit; what remains of it is in the one with `remaining`."""


def error_code_and_message(body: object) -> tuple[str, str]:
    """Return the codes and the message in the body of an error, empty if it has none.

    The message is the text in the outermost fields that have one by name; the codes are those down
    to the objects in these fields.
    """
    if isinstance(body, str):
        return "", body.strip()[:MAX_TEXT]
    codes: list[str] = []
    messages: list[str] = []
    level, wanted = [body], "message"
    for _ in range(_MAX_DEPTH):
        objects = list(_objects(level))[:_MAX_OBJECTS]
        for each in objects:
            for name, value in each.items():
                meaning = FIELDS.get(name.lower())
                if meaning == "code" and type(value) in (str, int) and value != "":
                    codes.append(str(value))
                elif meaning == wanted:
                    messages += _texts(value, each.get("loc"))
        if wanted == "upstream":
            break
        wanted = "upstream" if messages else "message"
        level = [value for each in objects for value in each.values()]
    return " ".join(codes)[:MAX_TEXT], " ".join(dict.fromkeys(messages))[:MAX_TEXT]


def _objects(values: Iterable[object]) -> Iterator[JsonObject]:
    for value in values:
        elements = value if isinstance(value, list) else [value]
        yield from (each for each in elements if isinstance(each, dict))


def _texts(value: object, location: object) -> list[str]:
    """Return the texts in a field; FastAPI says where in the request its errors are."""
    texts = [text for text in (value if isinstance(value, list) else [value]) if text]
    place = f"{'.'.join(map(str, location))}: " if isinstance(location, list) else ""
    return [f"{place}{text}" for text in texts if isinstance(text, str)]


def stated_wait(body: object, headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to headers or, without any, to the body of an error.

    OpenRouter repeats the headers of the provider behind it; Google states a delay.
    """
    error = error_object(body)
    wait = retry_after({**object_at(error, "metadata.headers"), **headers})
    if wait is not None:
        return wait
    delays = (text_or_repr(each.get("retryDelay")) for each in objects_at(error, "details"))
    return next((_seconds(delay) for delay in delays if delay), None)


def exceeds_daily_quota(body: object) -> bool:
    """Return whether one of the quotas that Google names in an error is one per day."""
    details = objects_at(error_object(body), "details")
    violations = (each for detail in details for each in objects_at(detail, "violations"))
    return any("PerDay" in text_or_repr(each.get("quotaId")) for each in violations)


def error_object(body: object) -> JsonObject:
    """Return the object in `error`, or the body itself if it has none."""
    first = body[0] if isinstance(body, list) and body else body
    return object_at(first, "error") or object_at(first)


def retry_after(headers: JsonObject) -> float | None:
    """Return the seconds to wait after a request that was rejected for now, None if unknown.

    That is what the server says explicitly, else the longest reset of the limits that are, or
    may be, exhausted. Malformed headers count as absent.
    """
    fields = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, unit in _WAITS.items():
        if (seconds := _seconds(fields.get(name, ""), unit)) is not None:
            return seconds
    resets = [
        _seconds(fields[name])
        for name in filter(_RESET.fullmatch, fields)
        if _seconds(fields.get(name.replace("reset", "remaining"), "0")) == 0
    ]
    return max((seconds for seconds in resets if seconds is not None), default=None)


def _seconds(text: str, unit: str = "s") -> float | None:
    """Return a number of seconds of 0 or more, None if the text has no such meaning.

    That is a number, a duration (`6m0s`, `20ms`, `1h2m`), or a moment that is still to come: a
    date, or seconds or milliseconds since 1970.
    """
    number = text + (unit if text[-1:].isdigit() else "")
    if not _DURATION.fullmatch(number):
        seconds = _seconds_until(text)
    else:
        parts = _DURATION_PART.findall(number)
        seconds = sum(float(value) * _SECONDS_PER_UNIT[name] for value, name in parts)
        if seconds >= _FIRST_MILLISECONDS:
            seconds /= 1000
        if seconds >= _FIRST_TIMESTAMP:
            seconds -= time.time()
    return seconds if 0 <= seconds < math.inf else None


def _seconds_until(text: str) -> float:
    """Return the seconds from now to an ISO 8601 or HTTP date, NaN for another text."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.timestamp() - time.time()
        except (ValueError, OverflowError):
            continue
    return math.nan
