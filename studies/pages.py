"""What the studies share: templates, tables in Markdown, figures as SVG, and the command line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from numbench.core.jsonl import write_atomically
from numbench.errors import NumbenchError
from numbench.plot_style import plot_style, render_figure


def fill(template: Path, values: Mapping[str, str]) -> bytes:
    """Return the text of a template with every `{name}` replaced by its value.

    Raises KeyError for a name without a value.
    """
    text = template.read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], text).encode()


def render_page(template: Path, values: Mapping[str, object]) -> str:
    """Return a page. Text from files has to be escaped as Markdown in `values`."""
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(template.name).render(values)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Return a table; the cells are Markdown, the first columns left-aligned text."""
    alignment = [":--" if column < text_columns else "--:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, alignment, *rows))


def markdown_table(frame: pd.DataFrame) -> str:
    """Return a table in Markdown: the index is the first column, the others are right-aligned."""
    header = [str(frame.index.name or ""), *map(str, frame.columns)]
    rows = zip(frame.index, frame.values, strict=True)
    return table(header, ([str(name), *map(str, row)] for name, row in rows))


@contextmanager
def svg_figure(files: dict[str, bytes], name: str, size: tuple[float, float]) -> Iterator[Figure]:
    """Yield an empty figure of a size in inches, and add it to the files as SVG.

    The same data give the same bytes.
    """
    with plot_style():
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        files[name] = render_figure(figure, ("svg",))["svg"]


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a folder and print their names."""
    for name, data in files.items():
        write_atomically(folder / name, data)
        print(folder / name)


def write_study_pages(
    module: str,
    description: str | None,
    render: Callable[[Path], Mapping[str, bytes]],
    folder: Path,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command `python -m MODULE [--out FOLDER] RESPONSES`, and return its exit code.

    render: returns the content of every file, by name, from the folder of the paper's responses.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--out", type=Path, default=folder, help="default: %(default)s")
    parser.add_argument("responses", type=Path, help="the folder of the paper's raw responses")
    options = parser.parse_args(arguments)
    try:
        write_files(options.out, render(options.responses))
    except NumbenchError as error:
        print(f"studies: {error}", file=sys.stderr)
        return error.exit_code
    return 0
