"""A model's thinking, told from its answer by the tags `<think>…</think>`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

OPENING, CLOSING = "<think>", "</think>"

_THINKING = re.compile(r".*?</think>(?:\s*<think>.*?</think>)*", re.DOTALL)


class Parts(NamedTuple):
    """Generated tokens in two parts: `tokens[:thinking]` is thinking, the rest the answer.

    reasoning_text: without its outermost tags; None where the model did not think.
    """

    thinking: int
    reasoning_text: str | None


def split(tokens: Sequence[int], decode: Callable[[Sequence[int]], str], opened: bool) -> Parts:
    """Where the thinking in `tokens` ends: behind its closing tag, which counts as thinking.

    `decode` must keep special tokens, as which some tokenizers hold the tags. `opened`: the prompt
    ended in an opening tag, so that only the closing one is generated. Thinking that was opened
    and never closed is all there is: the answer is empty.
    """
    text = decode(tokens)
    if closed := _THINKING.match(text):
        thought = closed.group()
        end = bisect_left(
            range(len(tokens)), True, key=lambda n: _holds(decode, tokens[:n], thought)
        )
        return Parts(end, _without_tags(thought))
    if opened or text.lstrip().startswith(OPENING):
        return Parts(len(tokens), _without_tags(text))
    return Parts(0, None)


def _holds(decode: Callable[[Sequence[int]], str], tokens: Sequence[int], thought: str) -> bool:
    return decode(tokens).startswith(thought)


def _without_tags(thought: str) -> str:
    return thought.strip().removeprefix(OPENING).removesuffix(CLOSING).strip()
