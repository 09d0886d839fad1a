"""Splitting reasoning tags from answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from numbench.models.huggingface_model import split_reasoning


def characters(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def split_text(text: str, opened: bool = False) -> tuple[str, str | None]:
    """Return the answer and the reasoning in `text`, with one token per character."""
    split = split_reasoning([ord(letter) for letter in text], characters, opened)
    return characters(split.answer), split.reasoning_text


@pytest.mark.parametrize(
    ("text", "opened", "answer", "reasoning"),
    [
        ("<think>a b</think>\n7", False, "\n7", "a b"),
        ("a b\n</think>7", True, "7", "a b"),
        ("a b</think>7", False, "7", "a b"),
        ("<think></think>7", False, "7", ""),
        ("<think>a</think> <think>b</think>7", False, " 7", "a\n\nb"),
        ("<think>a</think>7 </think> 8", False, " 8", "a\n\n7"),
        ("<think>a", False, "", "a"),
        ("a 7", True, "", "a 7"),
        ("7", False, "7", None),
        ("7 <think>", False, "7 ", ""),
        ("", False, "", None),
        ("", True, "", ""),
    ],
)
def test_reasoning_ends_after_its_closing_tag(
    text: str, opened: bool, answer: str, reasoning: str | None
) -> None:
    assert split_text(text, opened) == (answer, reasoning)


def test_a_token_with_the_closing_tag_counts_as_reasoning() -> None:
    pieces = ["<think>", "a", "</think>\n", "7"]

    def decode(tokens: Sequence[int]) -> str:
        return "".join(pieces[token] for token in tokens)

    assert split_reasoning(range(4), decode, False) == ([3], "a")
