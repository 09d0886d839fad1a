"""The shape of a request: its body without the question, and what a route did to the messages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from numbench.models import Message

QUESTION = "{question}"
"""What stands for the question in a shape."""

_VARYING_FIELDS = frozenset(
    {"seed", "random_seed", "stream", "stream_options", "summary", "background", "store"}
)
"""Fields that differ between the samples of an item, or do not change the answer.

summary: of the reasoning, in the Responses format; OpenAI refuses it to some organizations.
"""

_MESSAGE_FIELDS = frozenset(
    {"content", "input", "inputs", "inputText", "instructions", "message", "preamble", "prompt"}
    | {"system", "system_instruction", "systemInstruction", "system_prompt", "text"}
)
"""The fields that contain the texts of a conversation, in the formats of all providers."""

_SYSTEM_FIELDS = ("system", "system_instruction", "systemInstruction")
"""The fields whose texts are a system prompt, whatever role they name."""

_ROLES = {
    "system": ("system", "developer"),
    "user": ("user",),
    "assistant": ("assistant", "model"),
}
"""The roles of providers that mean the same as each role of a `Message`."""


def contains_text(body: object, text: str) -> bool:
    """Return whether a string in `body` contains `text`."""
    return any(text in leaf for _, leaf in _strings(body))


def request_shape(body: object, question: str) -> Any:
    """Return `body` with QUESTION instead of `question`, without seeds and stream parameters.

    The strings that are the question itself count, or else those that end in it, or contain it: a
    short question may also be part of a prompt.
    """
    leaves = {leaf for _, leaf in _strings(body)}
    if question in leaves:
        return _map_strings(body, lambda leaf: QUESTION if leaf == question else leaf)
    if any(leaf.endswith(question) for leaf in leaves):
        return _map_strings(
            body,
            lambda leaf: (
                leaf.removesuffix(question) + QUESTION if leaf.endswith(question) else leaf
            ),
        )
    return _map_strings(body, lambda leaf: leaf.replace(question, QUESTION))


def shape_sha256(shape: object) -> str:
    """Return the hash of a shape, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(shape, order="sorted")).hexdigest()


def shape_differences(old: object, new: object) -> list[str]:
    """Return what differs between two shapes, such as `max_tokens 8192 → 16384`."""
    before, after = dict(_values(old)), dict(_values(new))
    return [
        f"{path} {_shortened(before.get(path))} → {_shortened(after.get(path))}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def message_changes(body: object, messages: Sequence[Message]) -> list[str]:
    """Return how the messages in `body` differ from `messages`, empty if they do not.

    Every text must be sent once, unchanged, in its role and in order (a system prompt may be
    anywhere), and no other text.
    """
    texts = [leaf for field, leaf in _strings(body) if field in _MESSAGE_FIELDS and leaf.strip()]
    expected = Counter(message.content for message in messages if message.content.strip())
    changes = [
        f"adds {_shortened(text)} ({len(text):,} characters)"
        for text in (Counter(texts) - expected).elements()
    ]
    sent = Counter(leaf for _, leaf in _strings(body))
    changes += [f"omits or changes {_shortened(text)}" for text in (expected - sent).elements()]
    if changes:
        return changes
    turns = [message.content for message in messages if message.role != "system"]
    if [text for text in texts if text in turns] != turns:
        return ["changes the order of the messages"]
    role_of = {message.content: message.role for message in messages}
    return [
        f"sends {_shortened(text)} as {role}"
        for role, text in _turns(body)
        if text in role_of and role not in _ROLES[role_of[text]]
    ]


def parameters_of(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body of a request without its messages."""
    fields = _MESSAGE_FIELDS | {"messages", "contents"}
    # `text` is an object of settings in the Responses API.
    return {
        name: value
        for name, value in body.items()
        if name not in fields or (name == "text" and isinstance(value, Mapping))
    }


def missing_parameters(body: object, params: Mapping[str, object]) -> list[str]:
    """Return the dotted names of those `params` that `body` contains nowhere with their value."""
    sent = [(path.rpartition(".")[2], value) for path, value in _values(body)]
    sent_names = {(_folded(name), repr(value)) for name, value in sent}
    return [
        path
        for path, value in _values(params)
        if path and (_folded(path.rpartition(".")[2]), repr(value)) not in sent_names
    ]


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _strings(node: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string in a JSON value, with the name of the field that contains it."""
    if isinstance(node, str):
        yield field, node
    elif isinstance(node, Mapping):
        for name, value in node.items():
            yield from _strings(value, name)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _strings(value, field)


def _map_strings(node: object, change: Callable[[str], str]) -> Any:
    """Return a JSON value with changed strings and without the fields that vary."""
    if isinstance(node, str):
        return change(node)
    if isinstance(node, Mapping):
        return {
            name: _map_strings(value, change)
            for name, value in node.items()
            if name not in _VARYING_FIELDS
        }
    if isinstance(node, list | tuple):
        return [_map_strings(value, change) for value in node]
    return node


def _values(node: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted paths and values of a JSON value; an empty object is a value."""
    if isinstance(node, Mapping) and node:
        for name, value in node.items():
            yield from _values(value, f"{path}.{name}" if path else name)
    elif isinstance(node, list | tuple) and any(isinstance(each, Mapping) for each in node):
        for index, value in enumerate(node):
            yield from _values(value, f"{path}.{index}")
    else:
        yield path, node


def _turns(node: object) -> Iterator[tuple[str, str]]:
    """Yield the role and each text of every message in a JSON value."""
    if isinstance(node, Mapping):
        role = node.get("role")
        if isinstance(role, str):
            yield from ((role, text) for _, text in _strings(node))
        else:
            for field, value in node.items():
                if field not in _SYSTEM_FIELDS:
                    yield from _turns(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _turns(value)


def _shortened(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:60]}…{text[-15:]}"
