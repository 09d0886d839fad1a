"""The wire formats of hosted models: pure functions from requests to bodies, and back.

A format makes the body of a request, merges the events of a streamed answer into the body of a
whole one, and reads a completion from that. Nothing here sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from numbench.models.base import Message, RequestSettings
from numbench.models.failures import failed_completion, failure_in_answer, unreadable_failure
from numbench.models.formats import chat, gemini, messages, responses
from numbench.models.json_fields import (
    decode_json,
    is_event_stream,
    iter_events,
    parse_cost,
    parse_usage,
    text_or_repr,
)
from numbench.records import Completion, Failure, Usage


class Format(NamedTuple):
    """One wire format.

    url: returns the URL of requests for a base URL, the served name, and whether they stream.
    headers: returns those with the key and, for a body, the version of the API.
    body: returns the body of a request; its last argument is the name of the token limit.
    stream: what a body adds to request a stream.
    merge: returns the body of the answer that the events of a stream make up; raises InvalidJson.
    usage: returns the usage in the body of an answer.
    answer: returns the completion in the body of an answer, or why there is none.
    """

    url: Callable[[str, str, bool], str]
    headers: Callable[[str, Mapping[str, object]], dict[str, str]]
    body: Callable[[str, Sequence[Message], RequestSettings, str], dict[str, object]]
    stream: Mapping[str, object]
    merge: Callable[[Iterable[Mapping[str, object] | None]], Mapping[str, object]]
    usage: Callable[[Mapping[str, object]], Usage]
    answer: Callable[[Mapping[str, object]], Completion | Failure]

    def decode(self, content: bytes) -> object:
        """Return the body of an answer, streamed or not. Raises InvalidJson if there is none."""
        if is_event_stream(content):
            return self.merge(iter_events(content))
        return decode_json(content)

    def parse(self, body: object) -> Completion:
        """Return the completion in the body of an answer, or the failure that it reports.

        A failure has usage and cost: what was generated is billed.
        """
        if not isinstance(body, dict):
            text = f"the server sent no JSON object: {text_or_repr(body)}"
            return failed_completion(unreadable_failure(text))
        answer = _failure(body) if body.get("error") else self.answer(body)
        completion = failed_completion(answer) if isinstance(answer, Failure) else answer
        usage, cost = self.usage(body), parse_cost(body)
        return msgspec.structs.replace(completion, usage=usage, cost=cost)


def _failure(body: Mapping[str, object]) -> Failure:
    """Return the failure in a body. What was generated before a stream broke off may be billed."""
    failure = failure_in_answer(body["error"])
    if not body.get("is_started") or failure.kind not in ("transient", "rate_limit"):
        return failure
    return msgspec.structs.replace(failure, status=None, possibly_billed=True)


def _bearer(key: str, body: Mapping[str, object]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


FORMATS = {
    "chat": Format(
        lambda base, name, streams: f"{base}/chat/completions",
        _bearer,
        chat.build_request,
        {"stream": True, "stream_options": {"include_usage": True}},
        chat.merge,
        partial(parse_usage, fields=chat.USAGE),
        chat.read_answer,
    ),
    "responses": Format(
        lambda base, name, streams: f"{base}/responses",
        _bearer,
        responses.build_request,
        {"stream": True},
        responses.merge,
        partial(parse_usage, fields=responses.USAGE),
        responses.read_answer,
    ),
    "messages": Format(
        lambda base, name, streams: f"{messages.api_root(base)}/messages",
        messages.headers,
        messages.build_request,
        {"stream": True},
        messages.merge,
        partial(parse_usage, fields=messages.USAGE),
        messages.read_answer,
    ),
    "gemini": Format(
        gemini.url,
        lambda key, body: {gemini.KEY_HEADER: key},
        gemini.build_request,
        {},
        gemini.merge,
        gemini.usage,
        gemini.read_answer,
    ),
}
"""OpenAI's Chat Completions and Responses, Anthropic's Messages, and Google's Gemini."""
