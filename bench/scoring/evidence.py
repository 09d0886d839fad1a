"""Signs, in what a model says of its reasoning, that it may have used a tool.

The study could only promise that none was used. This reads the thoughts that a provider shows; it
proves nothing either way, and a provider that shows none cannot be judged at all.
"""

from __future__ import annotations

import re

_TOOL = re.compile(
    r"\b(?:calculators?|python|wolfram|mathematica|matlab|spreadsheet|code interpreter"
    r"|(?:web|internet|google) search|search engine|software tool|computational tool"
    r"|(?:run|runs|running|execut\w+|writ\w+) (?:some |a |the |quick |small )*"
    r"(?:code|script|program))\b"
)
# Every match holds one of these; most long thoughts hold none, and are told so at once.
_STEMS = ("calculator", "python", "wolfram", "math", "matlab", "sheet", "code", "script",
          "search", "tool", "program")  # fmt: skip
_DENIAL = re.compile(
    r"\b(?:no|not|never|without|cannot|nor|avoid\w*|forbid\w*|prohibit\w*|disallow\w*|instead of"
    r"|mental\w*|manual\w*|by hand|in my head)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def tool_mentions(reasoning_text: str | None) -> list[str]:
    """The sentences that speak of a tool, without denying it or calling it mental arithmetic.

    A tool is a calculator, Python, Wolfram, Mathematica, MATLAB, a spreadsheet, a code
    interpreter, code or a script that is written or run, or a search. A sentence denies it with a
    negation ("no need for a calculator"), or says that the work is mental, manual, or by hand.
    """
    if not reasoning_text:
        return []
    lower = reasoning_text.lower()
    if not any(stem in lower for stem in _STEMS) or not _TOOL.search(lower):
        return []
    sentences = _SENTENCE.split(reasoning_text)
    return [s for s in sentences if _TOOL.search(s.lower()) and not _DENIAL.search(s)]
