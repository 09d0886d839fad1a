"""Write figure and tables of the example in docs/prompts.md: python docs/_build/prompts_example.py

A scripted responder answers the first 200 items of three tasks. It knows the answers to 70 % of the
items; 30 % of these it loses where digits are grouped, and 10 % in the words of paraphrase-4.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from numbench.dataset.store import Dataset, open_dataset
from numbench.plot_style import plot_style, render_figure
from numbench.records import Item, Response, RunInfo
from numbench.reporting.entries import measure
from numbench.reporting.metamorphic import METAMORPHIC_HEADER, metamorphic_rows
from numbench.reporting.prompt_effects import SPREAD_HEADER, spread_rows
from numbench.reporting.report_data import ReportData
from numbench.reporting.variant_effects import figure_effects, variant_effects
from numbench.scoring import ScoredItem, ScoredRun
from numbench.scoring.exact_protocol import score_exact
from numbench.transforms import open_variant

DOCS = Path(__file__).parents[1]
FIGURE, PAGE = DOCS / "assets" / "prompts-example.svg", DOCS / "prompts.md"
ITEMS, TASKS = 200, ("addition", "multiplication", "mean")
FORMS = (
    *((name, None) for name in ("paper", *(f"paraphrase-{i}" for i in range(1, 6)), "steps")),
    *(("paper", form) for form in ("grouping", "plus", "swap")),
)
KNOWN, WITH_STEPS = 0.7, 0.85
LOST = {"grouping": 0.3, "paraphrase-4": 0.1}


def example_data() -> ReportData:
    """Return the data of a report on the responder's runs."""
    dataset = open_dataset("v1")
    return ReportData(measure([_run(dataset, prompts, form) for prompts, form in FORMS]))


def _run(dataset: Dataset, prompts: str, form: str | None) -> ScoredRun:
    variant = open_variant(prompts, form)
    rows: dict[str, list[ScoredItem]] = {task: [] for task in TASKS}
    for task in TASKS:
        for item in dataset.by_task[task][:ITEMS]:
            asked = variant.ask(item)
            is_changed = form is None or asked.prompt != item.prompt
            is_right = _is_right(item, prompts, (form or prompts) if is_changed else "paper")
            # Its errors have no relation to the question.
            answer = asked.answer if is_right else f"{_draw(item, asked.prompt):.6f}"
            text = f'{{"answer": {answer}}}'
            response = Response(item_id=item.id, text=text, finish_reason="stop")
            rows[task].append(ScoredItem(asked, response, score_exact(asked, response)))
    info = RunInfo(
        model="scripted",
        display="Scripted responder",
        reasoning="none",
        dataset=dataset.ref(DOCS),
        prompt=variant.prompts.ref(TASKS),
        tasks=TASKS,
        limit=ITEMS,
        settings={},
        versions={},
        created="",
        transform=form,
    )
    return ScoredRun(DOCS, info, dataset, "exact", rows)


def _is_right(item: Item, prompts: str, variant: str) -> bool:
    known = WITH_STEPS if prompts == "steps" else KNOWN
    return _draw(item, "knows") < known and _draw(item, variant) >= LOST.get(variant, 0.0)


def _draw(item: Item, purpose: str) -> float:
    return random.Random(f"{purpose} {item.id}").random()


def example_tables(data: ReportData) -> str:
    """Return the two tables of the page."""
    spread = _table(SPREAD_HEADER, spread_rows(data.runs, data.prompt_spreads), 2)
    forms = _table(
        METAMORPHIC_HEADER, metamorphic_rows(data.runs, data.metamorphic_results), 2, {"repeated"}
    )
    return f"{spread}\n{forms}"


def _table(
    header: tuple[str, ...], rows: list[list[str]], first: int, omitted: frozenset[str] | set[str] = frozenset()
) -> str:
    shown = [i for i, name in enumerate(header) if i >= first and name not in omitted]
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line[i] for i in shown)} |\n" for line in lines)


def example_figure(data: ReportData) -> bytes:
    """Return the figure of the page."""
    effects = figure_effects(data.runs, data.prompt_effects, data.metamorphic_results)
    ((_, of_run),) = effects.items()
    with plot_style():
        return render_figure(variant_effects("A scripted responder", of_run), ["svg"])["svg"]


def with_tables(page: str, tables: str) -> str:
    """Return the page with the tables between its two markers."""
    marker = "<!-- example -->\n"
    return re.sub(f"{marker}.*?{marker}", lambda _: f"{marker}\n{tables}\n{marker}", page, flags=re.S)


if __name__ == "__main__":
    example = example_data()
    FIGURE.write_bytes(example_figure(example))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_tables(page, example_tables(example)), encoding="utf-8")
