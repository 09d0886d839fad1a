"""Mentions of tools are detected, and their negations are not."""

from __future__ import annotations

import pytest

from numbench.scoring.tool_mentions import find_tool_mentions


@pytest.mark.parametrize(
    "sentence",
    [
        "I have already entered the numbers into my calculator.",
        "Let me run some code to check.",
        "I could write a quick script for this.",
        "Using Python, the result is 3.",
        "A web search gives 12.",
        "WolframAlpha? Wolfram says 7.",
    ],
)
def test_tool_mention_is_detected(sentence: str) -> None:
    assert find_tool_mentions(f"First the sum. {sentence} Done.") == [sentence.split("? ")[-1]]


@pytest.mark.parametrize(
    "sentence",
    [
        "I must not use a calculator.",
        "I can\u2019t run code here.",
        "No need to reach for a calculator.",
        "Use calculator mental: 3.7 squared.",
        "Without Python, I do it by hand.",
        "The code of conduct matters.",
        "A tool is a thing.",
        "We calculate 3 + 4.",
        "The encoding is odd.",
    ],
)
def test_negations_and_other_words_are_ignored(sentence: str) -> None:
    assert find_tool_mentions(sentence) == []


def test_negation_applies_only_to_its_own_sentence() -> None:
    text = "I should not use tools.\nLet me grab a calculator"
    assert find_tool_mentions(text) == ["Let me grab a calculator"]


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_missing_reasoning_has_no_mentions(text: str | None) -> None:
    assert find_tool_mentions(text) == []
