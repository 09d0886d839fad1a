"""Detect sentences of a model's reasoning that mention a calculator, code or a search.

A mention is a hint, not proof, in either direction. If a provider returns no reasoning text,
nothing can be detected.
"""

from __future__ import annotations

import re

_TOOL = re.compile(
    r"\b(?:calculators?|python|wolfram|mathematica|matlab|spreadsheet|code interpreter"
    r"|(?:web|internet|google) search|search engine|software tool|computational tool"
    r"|(?:run|runs|running|execut\w+|writ\w+) (?:some |a |the |quick |small )*"
    r"(?:code|script|program))\b"
)
# Every match of _TOOL contains one of these. The substring test rejects most texts quickly.
_TOOL_SUBSTRINGS = ("calculator", "python", "wolfram", "math", "matlab", "sheet", "code", "script",
          "search", "tool", "program")  # fmt: skip
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|cannot|nor|avoid\w*|forbid\w*|prohibit\w*|disallow\w*|instead of"
    r"|mental\w*|manual\w*|by hand|in my head)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def find_tool_mentions(reasoning_text: str | None) -> list[str]:
    """Return the sentences that mention a tool and do not negate it.

    Tools are a calculator, Python, Wolfram, Mathematica, MATLAB, a spreadsheet, a code
    interpreter, code or a script that is written or run, and a search. A sentence is left out
    if it contains a negation ("no need for a calculator") or describes mental, manual or
    handwritten work.
    """
    if not reasoning_text:
        return []
    lower = reasoning_text.lower()
    if not any(part in lower for part in _TOOL_SUBSTRINGS) or not _TOOL.search(lower):
        return []
    sentences = _SENTENCE_END.split(reasoning_text)
    return [s for s in sentences if _TOOL.search(s.lower()) and not _NEGATION.search(s)]
