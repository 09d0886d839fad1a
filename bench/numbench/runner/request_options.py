"""HTTP headers and parameters that the user adds to every request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from numbench.core.texts import Sentences
from numbench.errors import BadInput
from numbench.runner.options import option_name

_text = Sentences(__file__)

_OWN_HEADERS = {"accept-encoding", "anthropic-version", "connection", "content-length"} | {
    "content-type", "host", "transfer-encoding"
}  # fmt: skip
_PUBLIC_HEADERS = {"anthropic-beta", "openai-beta"}
"""Headers that change what an API does, and whose values are not secret."""


def parse_params(texts: str | Iterable[str]) -> dict[str, object]:
    """Return the nested parameters of `KEY=VALUE` texts, whose keys are nested by dots.

    Values are JSON; a single word needs no quotes. Raises BadInput for a malformed text, or for
    two that contradict each other. The message does not contain the value.
    """
    params: dict[str, object] = {}
    for text in _texts("--param", texts):
        key, separator, value = text.partition("=")
        *parents, name = key.strip().split(".")
        if not separator or not name or not all(parents):
            raise BadInput("--param: give KEY=VALUE, for example top_k=20 or a.b=true")
        target: Any = params
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise BadInput(f"--param {key}: {parent} is set already; remove one of the two")
        if name in target:
            raise BadInput(f"--param {key} is given twice; give it once")
        try:
            target[name] = msgspec.json.decode(value.strip())
        except msgspec.DecodeError:
            if not re.fullmatch(r"[A-Za-z_][\w./:@+-]*", value.strip()):
                raise BadInput(_text("no_json", key=key)) from None
            target[name] = value.strip()
    return params


def parse_headers(texts: str | Iterable[str]) -> dict[str, str]:
    """Return the headers of `NAME=VALUE` texts.

    Raises BadInput for a malformed text. The message does not contain the value.
    """
    headers: dict[str, str] = {}
    for text in _texts("--header", texts):
        name, separator, value = text.partition("=")
        if not separator:
            raise BadInput("--header: give NAME=VALUE")
        if name.strip().lower() in map(str.lower, headers):
            raise BadInput(f"--header {name.strip()} is given twice; give it once")
        headers[name.strip()] = value.strip()
    return headers


def _texts(option: str, texts: str | Iterable[object]) -> Iterator[str]:
    for text in [texts] if isinstance(texts, str) else texts:
        if not isinstance(text, str):
            raise BadInput(f"{option}: give a mapping, or texts")
        yield text


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise BadInput for a header that cannot be sent. The message does not contain its value."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise BadInput(f"--header {name!r}: not the name of a header, such as X-Title")
        if name.lower() in _OWN_HEADERS:
            raise BadInput(f"--header {name}: numbench sets this header; omit it")
        if not (value.isascii() and value.isprintable() and value):
            raise BadInput(_text("header_value", name=name))


def recorded_headers(headers: Mapping[str, str]) -> list[str]:
    """Return what identifies the headers of a run: their names, and values that are not secret.

    No hash of the others either: a short secret could be guessed from it.
    """
    return sorted(
        f"{name}={value}" if name.lower() in _PUBLIC_HEADERS else name
        for name, value in headers.items()
    )


def check_params(
    params: Mapping[str, object], level_request: Mapping[str, object], options: Iterable[str] = ()
) -> None:
    """Raise BadInput for parameters that an option sets, or that are no JSON.

    level_request: the parameters of the reasoning level, and options: the names of further options
    in use, which `params` must not contradict.
    """
    # Loading the models takes longer than the help of the command.
    from numbench.models.facts import OWN_PARAMETERS, folded

    try:
        json.dumps(params, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"--param: not a JSON value: {error}") from None
    set_by = {folded(name): option_name(name) for name in options}
    level_names = {folded(path[-1]) for path in _paths(level_request)}
    if "reasoningeffort" in level_names:
        level_names.add("effort")
    for path in _paths(params):
        key, names = ".".join(path), list(map(folded, path))
        if not all(path):
            raise BadInput(f"--param {key!r}: names must not be empty")
        # The fields of this object are parameters like those at the top level.
        name = names[1] if names[0] == "generationconfig" and len(names) > 1 else names[0]
        if names[:2] == ["text", "format"]:
            name = "responseformat"
        if advice := OWN_PARAMETERS.get(name):
            raise BadInput(f"--param {key}: {advice}")
        if known := {*names} & set_by.keys():
            raise BadInput(f"--param {key}: {set_by[known.pop()]} sets it; omit one of them")
        if names[-1] in level_names:
            raise BadInput(_text("level", key=key))


def _paths(node: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, (*path, str(name)))
        else:
            yield (*path, str(name))
