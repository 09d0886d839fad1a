"""Separate the thinking that some servers leave in the text of a response from the answer.

A server that is configured for its model returns the thinking in a field of its own. Others leave
it in the text, between tags or in the channels of OpenAI's harmony format.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from numbench.records import Completion

CompletionT = TypeVar("CompletionT", bound=Completion)

# Tags that are special tokens, and the tags that close them.
_SPECIAL_TAGS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|think|>": "<|/think|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
}
_OPENING_TAGS = {closing: opening for opening, closing in _SPECIAL_TAGS.items()}
_TAG = re.compile(
    r"(?i:(?:<|&lt;)(?P<end>/?)(?:seed:)?"
    r"(?P<name>think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|cot)"
    r"(?:\s[^<>&]{0,99})?(?<!/)(?:>|&gt;))|"
    + "|".join(map(re.escape, [*_SPECIAL_TAGS, *_OPENING_TAGS]))
)
# A text that mentions a tag has words before it on its line, and quotes or such a word around it.
_QUOTES = frozenset("`'\"“”‘’")
_WORD_AFTER_MENTION = re.compile(r"[`'\"”’]?[ \t]{1,9}(?:tags?|blocks?|sections?|tokens?)\b")
_ONE_OBJECT = re.compile(r"\s*+(?:```(?:json)?\s*+)?\{[^{}]*+\}\s*+(?:```\s*+)?")
_HARMONY_TOKEN = re.compile(r"<\|(channel|message|start|end|return|call)\|>")
_CHANNEL_NAME = re.compile(r"\s*+(\w*+)")
# Harmony as it is printed by a decoder that leaves out special tokens.
_BARE_ANALYSIS = re.compile(r"\s*+analysis(?P<is_joined>(?=[A-Z0-9\"'“(\[{]))?")
_BARE_FINAL = "assistantfinal"


class Span(NamedTuple):
    """The part `text[start:end]` of a text."""

    start: int
    end: int


class ThinkingSpans(NamedTuple):
    """Where answer and thinking are in a text, each without tags.

    is_open: the text ends inside the thinking.
    """

    answer: list[Span]
    thinking: list[Span]
    is_open: bool


class SeparatedText(NamedTuple):
    """The answer and the thinking of a text; see `separate_thinking`."""

    answer: str
    thinking: str | None
    is_open: bool


def separate_thinking(text: str) -> SeparatedText:
    """Return the answer and the thinking in `text`.

    - `<think>`, `<thinking>`, `<thought>`, `<reasoning>`, `<reflection>`, `<analysis>`,
      `<scratchpad>`, `<cot>` (in either case, also `&lt;think&gt;` and `<seed:think>`) and the
      special tokens `_SPECIAL_TAGS` open a block of thinking, which reaches to the closing tag of
      the same name or else to the end.
    - All text before a closing tag without an opening one is thinking: such blocks are opened by
      the prompt. But one JSON object before a closing tag at the end of the text is the answer.
    - A tag that a sentence only mentions (in quotes, or `<think> tags`) opens and closes nothing.
    - If the text has harmony channels, the answer is the content of the channel `final`, also if
      the special tokens are missing (`analysisWe …assistantfinal…`).

    thinking: None, and the answer is the whole text, if there is none of these. is_open: the text
    ends inside the thinking. Never raises; runs in linear time.
    """
    spans = find_thinking(text)
    return SeparatedText(text, None, False) if spans is None else separate_spans(text, spans)


def separate_spans(text: str, spans: ThinkingSpans) -> SeparatedText:
    """Return the answer and the thinking at `spans` of `text`."""
    answer, thinking = (
        [stripped for start, end in part if (stripped := text[start:end].strip())]
        for part in (spans.answer, spans.thinking)
    )
    # Joined by a line break, so that the parts of a number do not become another number.
    return SeparatedText("\n".join(answer), "\n\n".join(thinking), spans.is_open)


def find_thinking(text: str, is_open: bool = False) -> ThinkingSpans | None:
    """Return where the thinking is, None if there is none.

    is_open: the prompt ended in an opening tag, so that the text starts inside the thinking.
    """
    has_tags = "<" in text or "THINK]" in text or "◁" in text or "&lt;" in text
    if has_tags and "<|channel|>" in text:
        return _find_channels(text)
    if "analysis" in text and (bare := _BARE_ANALYSIS.match(text)):
        final = text.rfind(_BARE_FINAL)
        if final >= 0:
            answer = Span(final + len(_BARE_FINAL), len(text))
            return ThinkingSpans([answer], [Span(bare.end(), final)], False)
        if bare["is_joined"] is not None:
            return ThinkingSpans([], [Span(bare.end(), len(text))], True)
    if is_open or has_tags:
        return _find_blocks(text, is_open)
    return None


def move_thinking(completion: CompletionT) -> CompletionT:
    """Return `completion` with the thinking moved from `text` to `reasoning_text`.

    The usage is unchanged: whether its visible tokens include the thinking is not known here.
    """
    answer, thinking, _ = separate_thinking(completion.text)
    if thinking is None:
        return completion
    parts = [part for part in (completion.reasoning_text, thinking) if part]
    return msgspec.structs.replace(
        completion, text=answer, reasoning_text="\n\n".join(parts) or None
    )


def split_tokens(
    tokens: Sequence[int], decode: Callable[[Sequence[int]], str], is_open: bool
) -> tuple[list[int], str | None]:
    """Return the tokens of the answer, and the reasoning without its tags, None without any.

    Tags count as reasoning. `decode` must keep special tokens, because the tags are such in some
    tokenizers. `is_open`: the prompt ends in an opening tag, so that only the closing one is
    generated.
    """
    text = decode(tokens)
    spans = find_thinking(text, is_open)
    if spans is None:
        return list(tokens), None

    def decoded_length(count: int) -> int:
        return len(decode(tokens[:count]))

    counts = range(len(tokens) + 1)
    answer: list[int] = []
    for start, end in spans.answer:
        first = bisect_left(counts, start, key=decoded_length)
        answer += tokens[first : bisect_right(counts, end, key=decoded_length) - 1]
    return answer, separate_spans(text, spans).thinking


class _Tag(NamedTuple):
    """A tag. name: what an opening tag and its closing tag have in common."""

    start: int
    end: int
    name: str
    is_closing: bool


def _find_tags(text: str) -> list[_Tag]:
    """Return the tags of a text, except for those that a sentence only mentions."""
    tags = []
    for tag in _TAG.finditer(text):
        before = text[max(tag.start() - 100, 0) : tag.start()].rpartition("\n")[2]
        is_quoted = before[-1:] in _QUOTES and text[tag.end() : tag.end() + 1] in _QUOTES
        if before.strip() and (is_quoted or _WORD_AFTER_MENTION.match(text, tag.end())):
            continue
        literal = tag.group()
        name = tag["name"].lower() if tag["name"] else _OPENING_TAGS.get(literal, literal)
        tags.append(_Tag(*tag.span(), name, bool(tag["end"]) or literal in _OPENING_TAGS))
    return tags


def _find_blocks(text: str, is_open: bool) -> ThinkingSpans | None:
    """Find the blocks between tags; None if there is no tag and `is_open` is false."""
    tags = _find_tags(text)
    if not tags and not is_open:
        return None
    if tags and not tags[0].is_closing and not text[: tags[0].start].strip():
        # The model repeats the tag that opened the block.
        is_open = False
    answer: list[Span] = []
    thinking: list[Span] = []
    # The tag of the open block: empty if the prompt has it, None outside a block.
    block: str | None = "" if is_open else None
    start = 0
    for tag in tags:
        before = Span(start, tag.start)
        if block is not None:
            if not tag.is_closing or block not in (tag.name, ""):
                continue
            thinking.append(before)
            block = None
        elif not tag.is_closing:
            answer.append(before)
            block = tag.name
        elif not text[tag.end :].strip() and _ONE_OBJECT.fullmatch(text, start, tag.start):
            # It only follows the answer object.
            answer.append(before)
        else:
            # What seemed to be the answer is thinking.
            thinking += [*answer, before]
            answer = []
        start = tag.end
    (answer if block is None else thinking).append(Span(start, len(text)))
    return ThinkingSpans(answer, sorted(thinking), block is not None)


def _find_channels(text: str) -> ThinkingSpans:
    """Find the messages of harmony's channels; text before the first token is thinking."""
    answer: list[Span] = []
    thinking: list[Span] = []
    # Where the current part goes to: None for what is not a message, such as a role.
    part: list[Span] | None = thinking
    start = 0
    header: re.Match[str] | None = None
    for token in _HARMONY_TOKEN.finditer(text):
        if part is not None:
            part.append(Span(start, token.start()))
        start = token.end()
        part = None
        if token[1] == "message":
            part = answer if header is not None and header[1] == "final" else thinking
        header = _CHANNEL_NAME.match(text, start) if token[1] == "channel" else None
    if part is not None:
        part.append(Span(start, len(text)))
    return ThinkingSpans(answer, thinking, not answer)
