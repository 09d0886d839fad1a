"""What the wire formats share: from the body of an answer to a completion, or to why it is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from numbench.models.base import Message, Request, RequestSettings, merge_parameters
from numbench.models.failures import failed_completion, failure_in_answer, unreadable_failure
from numbench.models.json_fields import (
    ENDINGS,
    PRICED_FIELDS,
    JsonObject,
    UsageFields,
    decode_json,
    error_in,
    is_event_stream,
    iter_events,
    join_texts,
    object_at,
    objects_at,
    parse_cost,
    parse_usage,
    reported_usage,
    text_at,
    text_or_repr,
    tokens_at,
    updated,
    value_at,
)
from numbench.records import Completion, Failure, FinishReason, Scalar, ToolCall, Usage

Charges = tuple[Usage, float | None]
"""The usage, and the cost in US dollars if it is known."""

FINISH_REASON = "finish_reason"
"""The field of `extra` with a reason that the records have no word for."""

_TOKENS_WITHOUT_TEXT = 4
"""The tokens that an answer without text may consist of: those that end it, or change channels."""


class Answer(NamedTuple):
    """What the body of an answer contains.

    completion: the texts and calls, and who answered. ending: the server's finish reason, None if
    it gives none. refusal: the text of a refusal. blocked: why the prompt was rejected. error:
    reported beside what was generated. has_begun: whether something may have been generated
    although there is no text.
    """

    completion: Completion = Completion()
    ending: object = None
    refusal: str | None = None
    blocked: str | None = None
    error: object = None
    has_begun: bool = False

    @property
    def has_content(self) -> bool:
        """Whether there is a text, a reasoning text or a call."""
        known = self.completion
        return bool(known.text or known.reasoning_text or known.calls)


class Format(ABC):
    """One wire format.

    path: of requests, below the root of the API. content: the field of an answer's body that
    contains the answer. stream: what a body adds to request a stream. usage_fields: where the
    counts of tokens are. tool: the declaration of the calculator.
    """

    path: ClassVar[str]
    content: ClassVar[str]
    stream: ClassVar[JsonObject] = {"stream": True}
    usage_fields: ClassVar[UsageFields]
    tool: ClassVar[JsonObject]

    def root(self, base_url: str) -> str:
        """Return the URL of the API for a base URL."""
        return base_url

    def url(self, base_url: str, name: str, streams: bool) -> str:
        """Return the URL of requests for a base URL and the served name."""
        return f"{self.root(base_url)}/{self.path}"

    def headers(self, key: str, body: JsonObject) -> dict[str, str]:
        """Return the headers with the key and, for a body, the version of the API."""
        return {"Authorization": f"Bearer {key}"}

    def body(
        self, model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
    ) -> dict[str, object]:
        """Return the body of a request. `token_limit`: the server's name of the token limit."""
        body = self.fields(model, Request(messages, settings), token_limit)
        if settings.tools is not None:
            body["tools"] = [self.tool]
        body = merge_parameters(body, self.sampling(settings.sampling))
        return merge_parameters(body, settings.params)

    def sampling(self, options: dict[str, object]) -> dict[str, object]:
        """Return the part of a body with options of the sampling, by their names in Python."""
        return options

    @abstractmethod
    def fields(self, model: str, request: Request, token_limit: str) -> dict[str, object]:
        """Return the body of a request without tools and the user's own parameters."""

    @abstractmethod
    def results(self, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        """Return the messages with the results of calls."""

    def turns(self, settings: RequestSettings) -> Iterator[JsonObject]:
        """Yield the messages that follow the question: replies, and the results of their calls."""
        for turn in settings.turns:
            yield from turn.reply
            yield from self.results(turn.calls)

    @abstractmethod
    def merge(self, events: Iterable[JsonObject]) -> JsonObject:
        """Return the body of a streamed answer.

        If the stream reports an error, that is the body's `error`, beside what came before it.
        Raises IncompleteStream if there is no finish reason: some servers also send the end marker
        after an answer that was cut off.
        """

    @abstractmethod
    def answer(self, body: JsonObject) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""

    def usage(self, body: JsonObject) -> Usage:
        """Return the usage in the body of an answer."""
        return parse_usage(body, self.usage_fields)

    def decode(self, content: bytes) -> object:
        """Return the body of an answer, streamed or not. Raises InvalidJson if there is none."""
        if is_event_stream(content):
            return self.merge(iter_events(content))
        return decode_json(content)

    def parse(
        self, body: object, max_tokens: int | None = None, reported: Charges | None = None
    ) -> Completion:
        """Return the completion in the body of an answer, or the failure that it reports.

        A failure has usage and cost: what was generated is billed. max_tokens: the limit of the
        request. reported: usage and cost, if they are not those of the body.
        """
        fields = object_at(body)
        answer = self.answer(fields)
        usage, cost = reported or (self.usage(fields), parse_cost(fields))
        if answer is None or error_in(fields) or answer.error:
            return failed_completion(self._reported_failure(body, answer), usage, cost)
        if answer.blocked:
            failure = Failure(kind="item", message=f"prompt blocked: {answer.blocked}")
            return Completion(finish_reason="refusal", error=failure, usage=usage, cost=cost)
        if usage.generated == 0 and answer.has_content:
            usage = reported_usage(input=usage.input)
        word = text_or_repr(answer.ending)
        known = None if answer.ending is None else ENDINGS.get(word.lower(), "failure")
        finish = "refusal" if answer.refusal else known
        if (reason := _missing_answer(answer, finish, usage)) is not None:
            return failed_completion(reason, usage, cost)
        # The Responses format repeats the limit.
        limit = max_tokens or tokens_at(fields, "max_output_tokens")
        # Some servers count the visible tokens only.
        is_full = limit and (usage.generated == limit or (usage.visible or 0) >= limit)
        if finish == "stop" and is_full:
            finish = "length"
        unnamed = {FINISH_REASON: word} if finish == "other" else {}
        completion = answer.completion
        return replace(
            completion,
            text=completion.text or answer.refusal or "",
            reasoning_text=completion.reasoning_text or None,
            finish_reason=cast(FinishReason | None, finish),
            usage=usage,
            cost=cost,
            reply=completion.reply if completion.calls else (),
            extra=completion.extra | unnamed | _priced_fields(fields),
        )

    def _reported_failure(self, body: object, answer: Answer | None) -> Failure:
        """Return the failure that a body reports. What was generated before it may be billed."""
        error = error_in(body) or (answer and answer.error)
        missing = f"the server sent no {self.content}"
        if not isinstance(body, dict | list):
            return unreadable_failure(f"the server sent no JSON object: {text_or_repr(body)}")
        if not error:
            return failure_in_answer(body, default=missing)
        failure = failure_in_answer(error if isinstance(error, dict) else body)
        if answer and (answer.has_content or answer.refusal or answer.has_begun):
            return replace(failure, status=None, possibly_billed=True)
        return failure


def merge_choices(
    events: Iterable[JsonObject], choices: str, usage: str
) -> tuple[dict[str, object], list[JsonObject]]:
    """Return the fields of the events of a stream, merged, and the first choice in each of them.

    choices, usage: their fields. After an error there is no usage but that of its own event; after
    a finish reason it is no matter of the answer.
    """
    body: dict[str, object] = {}
    firsts: list[JsonObject] = []
    for event in events:
        first = next((c for c in objects_at(event, choices) if not c.get("index")), {})
        is_error = error_in(event) or error_in(first)
        if is_error and any(one.get("finish_reason") or one.get("finishReason") for one in firsts):
            break
        has_text = any(value for name, value in object_at(first, "delta").items() if name != "role")
        if body.get(usage) and (has_text or join_texts(objects_at(first, "content.parts"), "text")):
            # What was counted before is not all but of the prompt.
            known = object_at(body, usage).items()
            body[usage] = {name: count for name, count in known if name.startswith("prompt")}
        body = updated(body, {k: v for k, v in event.items() if k != choices})
        firsts.append(first)
        if is_error:
            return body | {usage: event.get(usage)}, firsts
    return body, firsts


def tool_calls(
    calls: Iterable[object], id_: str, name: str, arguments: str, in_text: bool = False
) -> tuple[ToolCall, ...]:
    """Return the calls in a reply, with the paths of their fields; arguments may be JSON text.

    A call without a name is left out.
    """
    known = []
    for call in (call for call in calls if text_at(call, name)):
        given = value_at(call, arguments)
        given = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
        own_id, function = (text_or_repr(value_at(call, path)) for path in (id_, name))
        known.append(ToolCall(id=own_id, name=function, arguments=given, in_text=in_text))
    return tuple(known)


def _priced_fields(body: JsonObject) -> dict[str, Scalar]:
    paths = ((name, path) for name in PRICED_FIELDS for path in PRICED_FIELDS[name])
    fields = ((name, value_at(body, path)) for name, path in paths)
    return {name: value for name, value in fields if value and isinstance(value, str | int)}


def _missing_answer(answer: Answer, finish: str | None, usage: Usage) -> Failure | None:
    """Return why an answer is not the model's: only one with a known good ending is.

    Some servers give no finish reason in responses that are not streamed: these need a text.
    """
    if finish in ("failure", "account"):
        message = f"the server ended the answer with {text_or_repr(answer.ending)!r}"
        failure = unreadable_failure(message)
        return replace(failure, kind="run") if finish == "account" else failure
    completion = answer.completion
    if completion.text or completion.calls or finish in ("length", "refusal", "other"):
        return None
    if finish is None:
        return unreadable_failure("the server sent no text and no finish reason")
    visible = usage.visible
    if visible is None and usage.reasoning is None and not completion.reasoning_text:
        visible = usage.generated
    if (visible or 0) <= _TOKENS_WITHOUT_TEXT:
        return None
    return unreadable_failure(f"the server sent no text of an answer of {visible} tokens")
