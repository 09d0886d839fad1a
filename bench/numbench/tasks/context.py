"""Numbers in context: questions about tables and paragraphs of any length.

The size is the number of rows of a table, or of sentences of a paragraph. The operands are the
argument of the question, if it has one, and the numbers that it is about. Everything else in the
text, names, sites, units and other numbers, follows from the first of these numbers: from a hash of
it, and from fixed lists of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import Any, NamedTuple

from numbench.core.decimal_numbers import format_decimal
from numbench.core.installation import read_toml, resource_folder
from numbench.tasks.base import OperandFormat, SizeAxis, Task
from numbench.tasks.exact_arithmetic import to_decimal
from numbench.tasks.random_words import RandomWords, splitmix64
from numbench.tasks.scaled import scaled_task

_WORDS = read_toml(resource_folder("prompts") / "scaled" / "words.toml")
_FIRST, _SECOND, _SITES, _UNITS, _COLUMNS = (
    _WORDS[part].split() for part in ("first", "second", "sites", "units", "columns")
)
_LAYOUTS: dict[str, str] = _WORDS["layouts"]
_SENTENCES: list[list[str]] = [_WORDS["sentences"][str(numbers)] for numbers in range(3)]

SMALLEST, LARGEST = 100_000, 99_999_999
"""The range of the numbers, in hundredths."""

_NEXT_OBJECT = ",\n "
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LAST_OF_LINE = re.compile(r"([0-9.]+)[^0-9\n]*$", re.MULTILINE)


class _Scene(NamedTuple):
    """What surrounds the numbers of a text; `index` counts its rows or sentences, from 0."""

    seed: int

    def draw(self, purpose: int, index: int, bound: int) -> int:
        """Return an integer below `bound`."""
        return splitmix64(self.seed + (index << 8) + purpose) * bound >> 64

    def name(self, index: int) -> str:
        """Return a name, another one for each of 4,096 rows."""
        # An odd step visits every name.
        number = self.seed + index * (2 * self.draw(0, 0, 1 << 11) + 1)
        return f"{_FIRST[number // 64 % 64]} {_SECOND[number % 64]}"

    def id(self, index: int) -> int:
        """Return a number of four digits, another one for each of 9,000 rows."""
        # The step has no factor in common with 9,000.
        return 1000 + ((self.seed >> 20) + index * (30 * self.draw(1, 0, 300) + 7)) % 9000

    def site(self, index: int) -> int:
        """Return the index of a site."""
        return self.draw(2, index, len(_SITES))


def _scene(values: Sequence[str]) -> _Scene:
    return _Scene(splitmix64(int(values[0].replace(".", ""))))


def _amount(hundredths: int) -> str:
    return format_decimal(Decimal(hundredths) / 100)


def _table(layout: str, values: Sequence[str]) -> str:
    """Return a table in CSV, Markdown or JSON with the values in its column `actual`."""
    scene, pattern = _scene(values), _LAYOUTS[layout]
    unit, rows = _UNITS[scene.draw(3, 0, len(_UNITS))], []
    for i, value in enumerate(values):
        planned = _amount(SMALLEST + scene.draw(4, i, LARGEST - SMALLEST))
        site = _SITES[scene.site(i)]
        rows.append(pattern.format(scene.id(i), scene.name(i), site, planned, value, unit))
    if layout == "json":
        return f"[{_NEXT_OBJECT.join(rows)}]"
    rule = [pattern.format(*["---"] * len(_COLUMNS))] if layout == "markdown" else []
    return "\n".join([pattern.format(*_COLUMNS), *rule, *rows])


def _counts(scene: _Scene, numbers: int) -> list[int]:
    """Return how many of the numbers of a paragraph each sentence has: none, one or two.

    Raises ValueError if the last sentence would need another one.
    """
    counts: list[int] = []
    while sum(counts) < numbers:
        counts.append(scene.draw(5, len(counts), len(_SENTENCES)))
    if sum(counts) > numbers:
        raise ValueError("the last sentence needs another number")
    return counts


def _paragraph(_layout: str, values: Sequence[str]) -> str:
    """Return sentences with the values. Raises ValueError if these do not fill the last one."""
    scene, rest, sentences = _scene(values), list(values), []
    for index, count in enumerate(_counts(scene, len(values))):
        patterns = _SENTENCES[count]
        pattern = patterns[scene.draw(6, index, len(patterns))]
        name, site = scene.name(index), _SITES[scene.site(index)]
        sentences.append(pattern.format(*rest[:count], name=name, site=site))
        del rest[:count]
    return " ".join(sentences)


# Samplers: the values, in hundredths, and the argument of the question.
def _sample_rows(words: RandomWords, size: int) -> list[int]:
    return [words.randint(SMALLEST, LARGEST) for _ in range(size)]


def _sample_sentences(words: RandomWords, size: int) -> list[int]:
    """Draw the numbers of a paragraph; none if its last sentence has no number."""
    first = words.randint(SMALLEST, LARGEST)
    scene = _scene([_amount(first)])
    counts = [scene.draw(5, index, len(_SENTENCES)) for index in range(size)]
    return [first, *_sample_rows(words, sum(counts) - 1)] if counts[-1] else []


def _draw_row(words: RandomWords, values: list[int]) -> str:
    return str(words.randint(1, len(values)))


def _draw_threshold(words: RandomWords, _values: list[int]) -> str:
    return _amount(words.randint(SMALLEST, LARGEST))


def _draw_site(words: RandomWords, values: list[int]) -> str:
    """Draw the site of a row, and change the last value there so that their mean is exact."""
    scene = _scene([_amount(values[0])])
    site = scene.site(words.randbelow(len(values)))
    rows = [row for row in range(len(values)) if scene.site(row) == site]
    values[rows[-1]] -= sum(values[row] for row in rows) % len(rows)
    if values[rows[-1]] < SMALLEST:
        values[rows[-1]] += len(rows)
    return str(site + 1)


class _Argument(NamedTuple):
    """The first operand of a question, shown in the field `{a}`.

    choices: the texts among which it selects, counted from 1; without, the operand itself is shown.
    """

    draw: Callable[[RandomWords, list[int]], str]
    choices: Callable[[_Scene, int], Sequence[str]] = lambda _scene, _rows: ()


_NAME = _Argument(_draw_row, lambda scene, rows: [*map(scene.name, range(rows))])
_SITE = _Argument(_draw_site, lambda _scene, _rows: _SITES)


def _task(
    name: str,
    display: str,
    evaluate: Callable[[Sequence[str], Any, Any], Any],
    argument: _Argument | None = None,
    chance: Callable[[int], float] = lambda size: 1 / size,
) -> Task:
    """Return a task. evaluate: see `OperandFormat`; the argument is the first of the operands."""
    is_table, skip = name.startswith("table"), argument is not None
    write, sample_values = (_table, _sample_rows) if is_table else (_paragraph, _sample_sentences)

    def sample(words: RandomWords, size: int) -> tuple[str, ...] | None:
        values = sample_values(words, size)
        drawn = [argument.draw(words, values)] if argument else []
        is_valid = values and len(set(values)) == len(values)
        return (*drawn, *map(_amount, values)) if is_valid else None

    def choices(values: Sequence[str]) -> Sequence[str]:
        return argument.choices(_scene(values), len(values)) if argument else ()

    def format_(layout: str, operands: Sequence[str]) -> dict[str, str]:
        shown, values = operands[0], operands[skip:]
        if texts := choices(values):
            shown = texts[int(shown) - 1]
        return {"expression": write(layout, values), "a": shown}

    def parse(_layout: str, fields: Mapping[str, str]) -> tuple[str, ...]:
        values = tuple((_LAST_OF_LINE if is_table else _NUMBER).findall(fields["expression"]))
        if not values:
            raise ValueError("there are no numbers")
        if not skip:
            return values
        texts, shown = choices(values), fields["a"]
        return (str(texts.index(shown) + 1) if texts else shown, *values)

    def exact_answer(_operator: str, operands: Sequence[str]) -> str:
        value = evaluate(operands, to_decimal, lambda sign, a, b: a + b if sign == "+" else a / b)
        return format_decimal(Decimal(value))

    def size_of(operands: Sequence[str]) -> int:
        values = operands[skip:]
        return len(values) if is_table else len(_counts(_scene(values), len(values)))

    return scaled_task(
        name,
        display,
        sample,
        SizeAxis(
            "rows" if is_table else "sentences", lambda n: 2 * n + 2, lambda _n: 14, size_of,
            minimum=4, in_dataset="4, 8, 16, 32, 64, 128",
        ),
        "decimal",
        exact_answer=exact_answer,
        chance_accuracy=chance,
        operand_format=OperandFormat(format_, parse, evaluate),
    )  # fmt: skip


def _id_of_largest(values: Sequence[str], number: Callable[[str], Any], _operate: Any) -> int:
    numbers = [*map(number, values)]
    return _scene(values).id(numbers.index(max(numbers)))


def _total(values: Sequence[str], number: Callable[[str], Any], operate: Any) -> Any:
    return reduce(partial(operate, "+"), map(number, values))


def _mean_at(operands: Sequence[str], number: Callable[[str], Any], operate: Any) -> Any:
    scene, site = _scene(operands[1:]), int(operands[0]) - 1
    chosen = [value for row, value in enumerate(operands[1:]) if scene.site(row) == site]
    return operate("/", _total(chosen, number, operate), number(str(len(chosen))))


CONTEXT_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _task("table_lookup", "Look up", lambda of, number, _: number(of[int(of[0])]), _NAME),
        _task("table_max_row", "Row of max", _id_of_largest),
        _task(
            "table_count", "Count above",
            lambda of, number, _: sum(number(value) > number(of[0]) for value in of[1:]),
            _Argument(_draw_threshold), lambda size: 1 / (size + 1),
        ),
        _task("table_sum", "Column sum", _total, chance=lambda _size: 0.0),
        _task("table_mean", "Group mean", _mean_at, _SITE, lambda _size: 0.0),
        _task(
            "table_rank", "K-th largest",
            lambda of, number, _: sorted(map(number, of[1:]))[-int(of[0])], _Argument(_draw_row),
        ),
        _task("text_count", "Text count", lambda of, _number, _: len(of)),
        _task("text_max", "Text max", lambda of, number, _: max(map(number, of))),
    )
}  # fmt: skip
"""The tasks by name."""
