"""Sentences and templates in files beside the modules that fill them in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numbench.core.installation import read_toml

if TYPE_CHECKING:
    from jinja2 import Template


class Sentences:
    """The sentences of a module, from the TOML file of its name, with their values in braces."""

    def __init__(self, module: str) -> None:
        self.texts = read_toml(Path(module).with_suffix(".toml"))

    def __call__(self, name: str, /, **values: object) -> str:
        """Return a sentence with its values."""
        return str(self.texts[name].format(**values))


@cache
def text_template(path: Path, trims: bool = True, **options: Any) -> Template:
    """Return the template of a text.

    trims: whether a line with nothing but a statement leaves no line in the text. options: of its
    environment, such as the escape of values.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(path.parent), undefined=StrictUndefined, trim_blocks=trims,
        lstrip_blocks=trims, keep_trailing_newline=True, **options,
    )  # fmt: skip
    return environment.get_template(path.name)
