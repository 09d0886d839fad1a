"""Reading what servers send: JSON, fields by path (`a.b`: nested), usage, and server-sent events.

Requests stream so that bytes arrive while a model thinks: proxies and routers drop connections that
are silent for minutes. Nothing else needs the events one by one: formats merge them into the body
of a whole response.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from numbench.core.installation import read_toml
from numbench.records import Scalar, Usage

_TABLES: dict[str, Any] = read_toml(Path(__file__).with_name("reply_words.toml"))


def _by_word(table: str) -> dict[str, str]:
    return {word: meaning for meaning, words in _TABLES[table].items() for word in words}


ENDINGS = _by_word("endings")
"""What finish reasons mean, in lower case."""

FIELDS = _by_word("fields")
"""What the fields of errors contain, by their names in lower case."""

STATUSES: dict[str, int] = _TABLES["statuses"]
"""The HTTP statuses of codes and types of errors."""

RPC_STATUSES: list[int] = _TABLES["rpc"]["statuses"]
"""The HTTP status of each code of google.rpc.Code, from 0."""

PRICED_FIELDS: dict[str, list[str]] = _TABLES["priced"]
"""What an answer may say of its price: fields of `extra`, and paths in bodies of all formats."""


PATTERNS = {
    name: re.compile("|".join(choices), re.IGNORECASE)
    for name, choices in _TABLES["patterns"].items()
}
"""The regular expressions of what messages and codes of errors say, by name."""

JsonObject = Mapping[str, object]

_MAX_TOKEN_COUNT = 2**53
"""A larger number is not a token count, and some JSON readers do not keep it exactly."""


_MAX_DOLLARS = 1e6


class InvalidJson(ValueError):
    """A body that is not JSON, or is nested too deeply to be decoded."""


class WebPage(InvalidJson):
    """A page for people instead of JSON. Its text is the title, or else how the page begins."""


_PAGE_START = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--[^>]*-->\s*)?<(!doctype html|html|head|body)\b",
    re.IGNORECASE,
)
_PAGE_TITLE = re.compile(r"<title[^>]*>\s*([^<]+)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>?")


def decode_json(content: bytes) -> object:
    """Decode a response body. Raises InvalidJson if it is not JSON, WebPage for a page of HTML.

    A response is paid for even if one byte of it is wrong, so that lone surrogates and bytes that
    are not UTF-8, which strict JSON forbids, are accepted.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = error
    if _PAGE_START.match(content[:1000]):
        start = content[:5000].decode("utf-8-sig", "replace")
        title = _PAGE_TITLE.search(start)
        raise WebPage(" ".join((title[1] if title else _TAG.sub(" ", start)).split())[:100])
    try:
        value = json.loads(content.decode("utf-8-sig", "replace"), strict=False)
        # Of surrogates, pairs are joined, and lone ones replaced.
        text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return json.loads(text.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        raise InvalidJson(f"the server sent no JSON: {reason}") from None


def decoded(content: bytes, default: object = None) -> object:
    """Return what `decode_json` returns, `default` where there is no JSON."""
    try:
        return decode_json(content)
    except InvalidJson:
        return default


def text_or_repr(value: object) -> str:
    """Return a string unchanged, `""` for None, and a short description of anything else."""
    return value if isinstance(value, str) else "" if value is None else reprlib.repr(value)


def value_at(body: object, path: str = "") -> object:
    """Return the value at a path of names, None if there is none; without a path the body."""
    for name in path.split(".") if path else ():
        body = body.get(name) if isinstance(body, dict) else None
    return body


def text_at(body: object, path: str = "") -> str | None:
    """Return the string at a path, None if it is empty or something else."""
    value = value_at(body, path)
    return value if isinstance(value, str) and value else None


def object_at(body: object, path: str = "") -> JsonObject:
    """Return the object at a path, an empty one for anything else."""
    value = value_at(body, path)
    return value if isinstance(value, dict) else {}


def objects_at(body: object, path: str = "") -> list[JsonObject]:
    """Return the elements of the array at a path, each as an object; empty for anything else."""
    value = value_at(body, path)
    return [object_at(element) for element in value] if isinstance(value, list) else []


def tokens_at(body: object, path: str = "") -> int | None:
    """Return the number of tokens at a path, which some servers write as `9.0` or `"9"`."""
    value = value_at(body, path)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MAX_TOKEN_COUNT and value == int(value) else None


def dollars_at(body: object, path: str = "", units: float = 1.0) -> float | None:
    """Return the US dollars at a path, in units per dollar, if an answer may cost so much."""
    value = value_at(body, path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value / units if 0 <= value <= _MAX_DOLLARS * units else None


def join_texts(parts: Iterable[JsonObject], *names: str) -> str:
    """Return the texts of all parts, each under the first of the names that it has."""
    return "".join(next(filter(None, (text_at(p, name) for name in names)), "") for p in parts)


def without_nulls(fields: JsonObject) -> dict[str, object]:
    """Return the fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def updated(known: JsonObject, new: JsonObject) -> dict[str, object]:
    """Return `known` with the values of `new`, in which zeros, nulls and empty texts say nothing.

    Objects are merged: the counts at the end of a stream may be zeros although others were known.
    """
    result = dict(known)
    for name, value in new.items():
        before = known.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            result[name] = updated(before, value)
        elif value or not before:
            result[name] = value
    return result


_TICKS_PER_DOLLAR = 10**10


def error_in(body: object) -> object:
    """Return the field `error`, None if nothing in it has a value: some servers always send it."""
    error = value_at(body, "error")
    is_empty = isinstance(error, dict) and not any(error.values())
    return None if is_empty or not error else error


def text_fields(body: object, **paths: str) -> dict[str, Scalar]:
    """Return the texts of a body that `extra` keeps, by their names there."""
    return {name: text for name, path in paths.items() if (text := text_at(body, path))}


class UsageFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of the counts in a response, for `output` that includes the reasoning.

    inputs: their sum is the input; all but the first may be missing. reasoning, cached: the first
    that is known counts. cached: input that some servers count in the total only.
    """

    inputs: tuple[str, ...]
    output: str
    reasoning: tuple[str, ...] = ()
    total: str = ""
    cached: tuple[str, ...] = ()


USAGE_FIELDS = msgspec.convert(_TABLES["usage"], dict[str, UsageFields])
"""Where the counts are, by format."""


def parse_usage(body: object, fields: UsageFields) -> Usage:
    """Return the usage in a response. An input of zero is unknown: no prompt is empty.

    If the total is larger than input and output, the server counts the reasoning separately, as
    xAI does, or not at all, and the total is right; or it leaves cached input out of the input.
    """
    counts = [tokens_at(body, path) for path in fields.inputs if value_at(body, path)]
    known = [count for count in counts if count is not None]
    is_complete = value_at(body, fields.inputs[0]) is not None and len(known) == len(counts)
    input_tokens = tokens_at(sum(known)) or None if is_complete else None
    output, total = tokens_at(body, fields.output), tokens_at(body, fields.total)
    reasoning, cached = _first(body, fields.reasoning), _first(body, fields.cached) or 0
    generated, is_split = output, True
    rest = None if total is None or input_tokens is None else total - input_tokens
    counted = output, (output or 0) + (reasoning or 0)
    if rest and input_tokens and rest not in counted and rest - cached in counted:
        input_tokens, rest = input_tokens + cached, rest - cached
    elif input_tokens and cached > input_tokens:
        input_tokens += cached
    if rest is not None and rest > (output or 0):
        if output is not None:
            reasoning = reasoning or rest - output
            is_split = rest == output + reasoning
        generated = rest
    if generated is not None and reasoning is not None and reasoning > generated:
        if rest == generated:
            # The reasoning is counted by another tokenizer than what is billed.
            reasoning = None
        else:
            generated = None
    visible = None
    if is_split and generated is not None and reasoning is not None:
        visible = generated - reasoning
    return reported_usage(
        input=input_tokens, reasoning=reasoning, visible=visible, generated=generated
    )


def _first(body: object, paths: Iterable[str]) -> int | None:
    counts = (tokens_at(body, path) for path in paths)
    return next((count for count in counts if count is not None), None)


def reported_usage(**counts: int | None) -> Usage:
    """Return the usage that a server reports, without a source if it reports nothing."""
    is_known = any(count is not None for count in counts.values())
    return Usage(**counts, source="reported" if is_known else None)


def parse_cost(body: object) -> float | None:
    """Return the US dollars that the usage reports. xAI's are a number of ticks.

    If the user's own key pays the model's provider (BYOK), OpenRouter's `cost` is its fee only and
    the provider's share is a separate field: without that the cost is unknown.
    """
    usage = object_at(body, "usage")
    cost = dollars_at(usage, "cost")
    if cost is None:
        return dollars_at(usage, "cost_in_usd_ticks", _TICKS_PER_DOLLAR)
    if usage.get("is_byok") is not True:
        return cost
    upstream = dollars_at(usage, "cost_details.upstream_inference_cost")
    return None if upstream is None else dollars_at(cost + upstream)


_EVENT_START = re.compile(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:")
_FIELD = re.compile(rb"^(data|event): ?(.*)", re.MULTILINE)
_END = re.compile(rb"^data: ?\[done\]\s*?$", re.MULTILINE | re.IGNORECASE)


class IncompleteStream(InvalidJson):
    """A stream that ends before the answer does."""

    def __init__(self) -> None:
        super().__init__(
            "connection failed: the stream ended without a finish reason; if every one does, "
            "add --no-stream"
        )


def is_event_stream(content: bytes) -> bool:
    """Return whether a response body consists of server-sent events rather than JSON."""
    return _EVENT_START.match(content) is not None


def iter_events(content: bytes) -> Iterator[JsonObject]:
    """Yield the JSON objects of server-sent events.

    The data of an event of the type `error`, or of an object that says so, becomes
    `{"error": data}`, if it has no such key. What follows the end marker does not count. Some
    servers separate events by one line end only: then each line of data is an event. Raises
    InvalidJson for a malformed event.
    """
    data: list[bytes] = []
    event_type, end = b"", 0
    content = content.removeprefix(b"\xef\xbb\xbf")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    marker = _END.search(content)
    stop = marker.start() if marker else len(content)
    # Everything between the fields is skipped at once, be it megabytes of blank lines.
    for field in _FIELD.finditer(content, 0, stop):
        name, value = field.groups()
        is_new = content.find(b"\n\n", end, field.start()) >= 0
        if is_new or (data and name == b"event"):
            yield from _decode_event(event_type, data)
            data, event_type = [], b""
        if name == b"data":
            data.append(value)
        else:
            event_type = value.strip()
        end = field.end()
    # An event that the end of the stream cuts off counts too.
    yield from _decode_event(event_type, data)


def _decode_event(event_type: bytes, lines: Sequence[bytes]) -> Iterator[JsonObject]:
    data = b"\n".join(lines)
    if event_type == b"error":
        error = decoded(data, data.decode("utf-8", "replace"))
        if not value_at(error, "error"):
            error = {"error": error or {"message": "the server reported an error"}}
        yield object_at(error)
    elif len(lines) > 1 and decoded(data) is None:
        for line in lines:
            yield from _decode_event(event_type, [line])
    elif b"{" in data:
        # Other texts are signs of life.
        try:
            event = object_at(decode_json(data))
        except InvalidJson as problem:
            event = {"error": str(problem)}
        yield {"error": event} if _is_error(event) and not event.get("error") else event


def _is_error(event: JsonObject) -> bool:
    """Return whether an event is an error without the key `error`: a message alone or with a code.

    FastAPI's message may be a list.
    """
    filled = [(name.lower(), value) for name, value in event.items() if value]
    known = {FIELDS.get(name) for name, value in filled if isinstance(value, str | int)}
    has_message = "message" in known and ("code" in known or len(event) == 1)
    has_more = any(isinstance(v, dict | list) for name, v in filled if name not in FIELDS)
    is_named = event.get("object") == "error" or event.get("detail")
    return bool(is_named or has_message) and not has_more
