"""The page of results/sample-complexity: tables of N90, ratios and growth, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2

from experiments.sample_complexity.outcomes import TARGETS, Cell, Cost, Outcome, Outcomes
from experiments.sample_complexity.statistics import (
    Ratio,
    geometric_mean,
    growth_per_bit,
    ratio_to_reference,
)
from numbench.tasks import TASKS

REFERENCE = "bittoken"
TITLES = {
    "bittoken": "BitToken",
    "base10": "Base 10 ᵃ",
    "fone": "FoNE",
    "digit": "Digit",
    "subword": "Subword",
    "bittoken-no-reciprocal": "BitToken without reciprocal",
    "xval": "xVal",
}
"""The encodings in the order of the tables' columns."""


def render_page(text: str, outcomes: Outcomes, missing: Mapping[Cell, int], rates: str) -> str:
    """Return the page. text: its introduction, with `{results}` for the tables."""
    parts = [
        _headline(outcomes),
        *(_section(task, outcomes) for task in ("multiplication", "addition", "division")),
        _shifted(outcomes),
        rates,
        _missing(missing),
    ]
    return text.replace("{results}", "\n\n".join(part for part in parts if part))


def _headline(outcomes: Outcomes) -> str:
    """Return the statement of the plan for every k of multiplication, one line each."""
    lines = []
    for bits in _bits("multiplication", outcomes):
        row = _row("multiplication", bits, 0, outcomes)
        if REFERENCE not in row or not _others(row):
            continue
        lines += [
            f"- **{bits} bits, to {target:.0%}**: {_statement(row, target)}." for target in TARGETS
        ]
    if not lines:
        return ""
    return "\n".join(["## Do BitTokens need the fewest questions for multiplication?", "", *lines])


def _statement(row: Mapping[str, Sequence[Outcome]], target: float) -> str:
    others = _others(row)
    ratios = {name: ratio_to_reference(row[name], row[REFERENCE], target) for name in others}
    if any(one.reached[target] is None for one in row[REFERENCE]):
        return f"BitTokens do not reach {target:.0%} with every seed"
    if any(ratio is None for ratio in ratios.values()):
        return "not decided before every encoding has two seeds"
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    factors = ", ".join(f"{TITLES[name]} {format_ratio(ratio)}" for name, ratio in known.items())
    verdict = "yes" if all(ratio.shows_more for ratio in known.values()) else "not shown"
    return f"{verdict}; questions relative to BitTokens: {factors}"


def _section(task: str, outcomes: Outcomes) -> str:
    """Return the tables of one operation on integers."""
    all_bits = _bits(task, outcomes)
    if not all_bits:
        return ""
    rows = {f"{bits} bits": _row(task, bits, 0, outcomes) for bits in all_bits}
    lines = [f"## {TASKS[task].display}: integers", "", *_tables(rows)]
    for target in TARGETS:
        if growth := _growth(task, outcomes, target):
            lines += ["", f"Growth of the questions to {target:.0%} per bit: {growth}."]
    return "\n".join(lines)


def _shifted(outcomes: Outcomes) -> str:
    """Return the contrast between integers and the same integers divided by powers of ten."""
    cells = [cell for cell in outcomes if cell.shift]
    if not cells:
        return ""
    lines = ["## The same integers divided by powers of ten", ""]
    rows = {}
    for task, bits, shift in dict.fromkeys((c.task, c.bits, c.shift) for c in cells):
        display = TASKS[task].display
        rows[f"{display}, {bits} bits"] = _row(task, bits, 0, outcomes)
        rows[f"{display}, divided"] = _row(task, bits, shift, outcomes)
    return "\n".join([*lines, *_tables(rows)])


def _tables(rows: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> Iterator[str]:
    """Yield the tables of questions, tokens, CPU-seconds and scores."""
    encodings = [name for name in TITLES if any(name in row for row in rows.values())]
    header = " | ".join(TITLES[name] for name in encodings)
    rule = "---|" + "---:|" * len(encodings)
    for title, cell in (*TABLES.items(), *COST_TABLES.items()):
        yield f"| {title} | {header} |"
        yield f"|{rule}"
        for name, row in rows.items():
            cells = " | ".join(cell(row[e]) if e in row else "" for e in encodings)
            yield f"| {name} | {cells} |"
        yield ""


def summary(outcomes: Outcomes, bits: int) -> str:
    """Return the statements on products of one size of operands, and the scores of that size."""
    cells = dict.fromkeys((c.task, c.shift) for c in outcomes if c.bits == bits)
    rows = {
        f"{TASKS[task].display}{', divided' if shift else ''}": _row(task, bits, shift, outcomes)
        for task, shift in cells
        if task in ("multiplication", "addition")
    }
    encodings = [name for name in TITLES if any(name in row for row in rows.values())]
    products = _row("multiplication", bits, 0, outcomes)
    lines = [f"- To {target:.0%}: {_statement(products, target)}." for target in TARGETS]
    titles = " | ".join(TITLES[name].removesuffix(" ᵃ") for name in encodings)
    lines += ["", f"| {bits} bits | | {titles} |"]
    lines.append("|---|---|" + "---:|" * len(encodings))
    for name, row in rows.items():
        for title, cell in TABLES.items():
            cells_of_row = " | ".join(cell(row[e]) if e in row else "" for e in encodings)
            lines.append(f"| {name} | {title} | {cells_of_row} |")
    return "\n".join(lines)


def _questions(cost: Cost) -> float:
    return cost.questions / 1000


def _tokens(cost: Cost) -> float:
    return cost.tokens / 1000


def _cpu_seconds(cost: Cost) -> float:
    return cost.cpu_seconds


def _amounts(
    target: float, quantity: Callable[[Cost], float]
) -> Callable[[Sequence[Outcome]], str]:
    """Return a function that formats the cost of a target over the seeds of a cell."""
    return lambda seeds: _amount(seeds, target, quantity)


def _amount(seeds: Sequence[Outcome], target: float, quantity: Callable[[Cost], float]) -> str:
    """Return mean and interval, or what is known if a seed is censored."""
    costs = [one.reached[target] for one in seeds]
    reached = sorted(quantity(cost) for cost in costs if cost is not None)
    if len(reached) < len(seeds):
        limit = _round(max(quantity(one.end) for one in seeds if one.reached[target] is None))
        limit = f"> {limit}"
        if not reached:
            return limit
        values = ", ".join(_round(value) for value in reached)
        return f"{values}; {limit} ({len(reached)} of {len(seeds)} seeds)"
    if len(reached) == 1:
        return _round(reached[0])
    mean = geometric_mean(reached)
    return f"**{_round(mean.value)}** ({_round(mean.low)}–{_round(mean.high)})"


def _scores(seeds: Sequence[Outcome]) -> str:
    values = [one.exact for one in seeds if one.reached[TARGETS[-1]] is None]
    return ", ".join(f"{100 * value:.1f}" for value in values)


TABLES: Mapping[str, Callable[[Sequence[Outcome]], str]] = {
    "Questions to 90 %, in thousands": _amounts(0.9, _questions),
    "Questions to 50 %, in thousands": _amounts(0.5, _questions),
    "Exact match at the budget, % (networks that reach it)": _scores,
}
"""Tables by title: what a cell shows about its seeds."""

COST_TABLES: Mapping[str, Callable[[Sequence[Outcome]], str]] = {
    "Tokens to 90 %, in thousands": _amounts(0.9, _tokens),
    "Tokens to 50 %, in thousands": _amounts(0.5, _tokens),
    "CPU-seconds to 50 %": _amounts(0.5, _cpu_seconds),
}


def _growth(task: str, outcomes: Outcomes, target: float) -> str:
    parts = []
    for encoding in TITLES:
        points = [
            (cell.bits, seeds)
            for cell, seeds in sorted(outcomes.items())
            if (cell.task, cell.shift, cell.encoding) == (task, 0, encoding)
        ]
        factors = growth_per_bit(points, target)
        if factors:
            shown = dict.fromkeys(f"{factor:.2f}" for factor in (min(factors), max(factors)))
            parts.append(f"{TITLES[encoding]} × {'–'.join(shown)}")
    return ", ".join(parts)


def _missing(missing: Mapping[Cell, int]) -> str:
    if not missing:
        return ""
    groups: dict[str, list[str]] = {}
    for cell, seeds in missing.items():
        kind = f"{TASKS[cell.task].display}{' divided' if cell.shift else ''}"
        title = TITLES[cell.encoding].removesuffix(" ᵃ")
        groups.setdefault(f"{kind}, {cell.bits} bits", []).append(f"{title} ({seeds})")
    lines = [f"- {name}: {', '.join(encodings)}" for name, encodings in groups.items()]
    return "\n".join(["## Not complete yet (missing seeds)", "", *lines])


def _row(task: str, bits: int, shift: int, outcomes: Outcomes) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes of one operation and operand size by encoding, in the columns' order."""
    cells = {name: Cell(task, bits, shift, name) for name in TITLES}
    return {name: outcomes[cell] for name, cell in cells.items() if cell in outcomes}


def _others(row: Mapping[str, object]) -> list[str]:
    """Return the encodings that the plan compares with BitTokens."""
    return [name for name in row if name in ("base10", "fone", "digit", "subword")]


def _bits(task: str, outcomes: Outcomes) -> list[int]:
    return sorted({cell.bits for cell in outcomes if cell.task == task and not cell.shift})


def format_ratio(ratio: Ratio) -> str:
    """Return a ratio with its interval, or as a lower bound."""
    if ratio.high is None:
        return f"at least × {ratio.value:.1f} (lower bound {ratio.low:.1f})"
    return f"× {ratio.value:.1f} ({ratio.low:.1f}–{ratio.high:.1f})"


def _round(value: float) -> str:
    """Return a value with two or three significant digits."""
    digits = max(0, 2 - int(log2(max(value, 1)) / log2(10)))
    return f"{value:,.{digits}f}"
