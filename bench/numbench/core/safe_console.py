"""A rich console for text of servers and of other people's files, which may hold escape codes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


class SafeConsole(Console):
    """A console that shows control characters as escapes, and brackets as they are."""

    def __init__(self, **options: Any) -> None:
        """Take the options of `rich.console.Console`. No text is markup or highlighted."""
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of `renderable`; only rich's own contain control codes."""
        for segment in super().render(renderable, options):
            is_safe = segment.control or segment.text.isprintable()
            yield segment if is_safe else segment._replace(text=_escape(segment.text))


def _escape(text: str) -> str:
    """Return `text` with control and format characters escaped, except for line breaks."""
    return "".join(
        repr(character)[1:-1]
        if character != "\n" and unicodedata.category(character)[0] == "C"
        else character
        for character in text
    )
