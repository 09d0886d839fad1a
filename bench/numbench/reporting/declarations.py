"""The declarations of tables and figures, from `tables_and_figures.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

RunKind = Literal["scores", "horizons"]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    form: `text`, `count`, `p`, `ranks`, `size` (of problems), `price` (three digits), or a format
    of numbers such as `.1f`. task: the task that its values are about, if it is one. lowest_first:
    whether low values are sought, such as prices. heat: whether the page colors its percentages.
    """

    field: str
    title: str
    form: str = "text"
    task: str = ""
    lowest_first: bool = False
    heat: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the values are text; the others are aligned right."""
        return self.form == "text"


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of a table or figure. needs: the kind of runs that it is about.

    kinds: of errors, in the order of the figure, with their categories. texts: name → sentence of
    the notes and cells of a table, with its values in braces.
    """

    caption: str
    title: str = ""
    columns: tuple[Column, ...] = ()
    latex: bool = False
    needs: RunKind = "scores"
    kinds: dict[str, tuple[str, ...]] = {}
    texts: dict[str, str] = {}


class Declarations(msgspec.Struct, frozen=True):
    """The content of the file, by name.

    lead: the figures that the page begins with. sections: heading → names of tables and figures.
    """

    lead: tuple[str, ...]
    sections: dict[str, tuple[str, ...]]
    tables: dict[str, Declaration]
    figures: dict[str, Declaration]


@cache
def declarations() -> Declarations:
    """Return the declarations. A column that is a text is one of those that several tables have."""
    text = Path(__file__).with_name("tables_and_figures.toml").read_text("utf-8")
    content = tomllib.loads(text)
    for table in content["tables"].values():
        names = table["columns"]
        table["columns"] = [
            content["columns"].get(each, each) if isinstance(each, str) else each for each in names
        ]
    return msgspec.convert(content, Declarations)
