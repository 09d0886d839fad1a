from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.models.thinking import split


def characters(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def cut(text: str, opened: bool = False) -> tuple[str, str | None]:
    """The answer's part of `text`, one token a character, and the thinking."""
    parts = split([ord(letter) for letter in text], characters, opened)
    return text[parts.thinking :], parts.reasoning_text


@pytest.mark.parametrize(
    ("text", "opened", "answer", "thought"),
    [
        ("<think>a b</think>\n7", False, "\n7", "a b"),
        ("a b\n</think>7", True, "7", "a b"),
        ("a b</think>7", False, "7", "a b"),
        ("<think></think>7", False, "7", ""),
        ("<think>a</think> <think>b</think>7", False, "7", "a</think> <think>b"),
        ("<think>a</think>7 </think> 8", False, "7 </think> 8", "a"),
        ("<think>a", False, "", "a"),
        ("a 7", True, "", "a 7"),
        ("7", False, "7", None),
        ("7 <think>", False, "7 <think>", None),
        ("", False, "", None),
        ("", True, "", ""),
    ],
)
def test_thinking_ends_behind_its_closing_tag(
    text: str, opened: bool, answer: str, thought: str | None
) -> None:
    assert cut(text, opened) == (answer, thought)


def test_a_token_that_holds_the_tag_and_more_counts_as_thinking() -> None:
    pieces = ["<think>", "a", "</think>\n", "7"]

    def decode(tokens: Sequence[int]) -> str:
        return "".join(pieces[token] for token in tokens)

    assert split(range(4), decode, False) == (3, "a")
