"""Foreign text made harmless for Markdown and LaTeX. (jinja2 escapes what goes into HTML.)"""

from __future__ import annotations

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # After the \\ of a row, a bare bracket would begin its optional argument.
        "[": "{[}",
        "]": "{]}",
    }
)
_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"\\{c}" for c in "\\`*_[]#|~!$"}
)


def latex(text: str) -> str:
    """One line of text for LaTeX's text mode."""
    return " ".join(text.translate(_LATEX).split())


def markdown(text: str) -> str:
    """One line of text for a Markdown paragraph or table cell."""
    return " ".join(text.translate(_MARKDOWN).split())
