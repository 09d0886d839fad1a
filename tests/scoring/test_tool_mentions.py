"""Mentions of tools are detected, and their negations are not."""

from __future__ import annotations

from numbench.scoring.tool_mentions import find_tool_mentions

MENTIONS = ["I have already entered the numbers into my calculator.",
            "Using Python, the result is 3.", "Let me run some code to check.",
            "I could write a quick script for this.",
            "A web search gives 12.", "Wolfram says 7."]  # fmt: skip
OTHERS = ["I must not use a calculator.", "I can\u2019t run code here.", "We calculate 3 + 4.",
          "No need to reach for a calculator.", "Use calculator mental: 3.7 squared.", "",
          "Without Python, I do it by hand.", "The code of conduct matters.", "A tool is a thing.",
          "The encoding is odd.", " \n"]  # fmt: skip


def test_a_mention_is_a_sentence_without_negation() -> None:
    for sentence in MENTIONS:
        assert find_tool_mentions(f"First the sum. {sentence} Done.") == [sentence]
    for sentence in OTHERS:
        assert find_tool_mentions(sentence) == []
    assert find_tool_mentions(None) == []
    text = "I should not use tools.\nLet me grab a calculator"
    assert find_tool_mentions(text) == ["Let me grab a calculator"]
