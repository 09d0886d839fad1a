"""The tables of the page, in Markdown that is narrow enough to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from statistics import fmean

from bench.report.escape import markdown
from bench.report.layout import EXACT_MATCH, LOG_SMAPE, Entry, TableSpec
from bench.report.published import published_entries
from bench.rescore.claims import Claim, Finding
from bench.rescore.labels import Labels
from bench.rescore.ladder import REPAIRS, Ladder
from bench.rescore.orders import Order
from bench.rescore.study import Config, Retaken, Study, config_of, shown
from bench.tasks import TASKS

TABLES = (LOG_SMAPE, EXACT_MATCH)
_GROUPS = (
    ("addition", "multiplication", "division"),
    ("exponentiation", "mean", "std"),
    ("minmax", "interval", "sorting"),
)
_NEAR = 1.0
_BELOW = 99.5
_MOVED = Decimal("0.05")
_LONGEST_QUESTION = 120


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table; cells are Markdown already."""
    aligned = [":--" if place < text_columns else "--:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, aligned, *rows))


def configs(study: Study) -> str:
    """Which configurations there are responses of, and for which tasks."""
    rows = []
    for run in study.exact:
        info = run.run.info
        lacking = [task.display for name, task in TASKS.items() if name not in run.cells]
        ending = f"_{str(info.settings['served_model']).replace('/', '__')}"
        ending += f"_re_{info.settings['effort']}.csv"
        rows.append(
            [
                markdown(run.entry.name),
                markdown(run.entry.reasoning),
                f"`…{ending}`",
                markdown(", ".join(lacking)) if lacking else "–",
                str(len(run.cells)),
            ]
        )
    return table(("Model", "Reasoning", "Files", "Without", "Tasks"), rows, 4)


def labels(study: Study) -> str:
    """The audit, the ceilings, and the best published score beside them."""
    rows = []
    for found in study.labels:
        measured = TASKS[found.task].metric == "log_smape"
        worst = found.largest_error
        row = [TASKS[found.task].display, str(found.n), str(len(found.wrong))]
        row.append("–" if worst is None else f"{worst:.1e}")
        row.append(shown(found.ceiling.score) if measured else "–")
        row.append(shown(found.ceiling.exact_match))
        # The paper's first table holds the comparison tasks in exact match.
        row.append(_best(LOG_SMAPE, found.task) if measured else "–")
        row.append(_best(EXACT_MATCH if measured else LOG_SMAPE, found.task))
        rows.append(row)
    header = ("Task", "Labels", "Wrong", "Largest relative error", "Ceiling log-sMAPE")
    more = ("Ceiling exact match", "*Best published log-sMAPE*", "*Best published exact match*")
    return table((*header, *more), rows)


def _best(spec: TableSpec, task: str) -> str:
    values = [e.tables[spec.name][task].value for e in _published(spec, task)]
    return f"*{shown(max(values))}*" if values else "–"


def _published(spec: TableSpec, task: str) -> list[Entry]:
    return [e for e in published_entries() if task in e.tables.get(spec.name, {})]


def at_ceiling(found: Sequence[Labels]) -> list[list[str]]:
    """Published scores that touch a ceiling well below 100: score, whose, published, ceiling."""
    rows = []
    for own in found:
        for spec in TABLES:
            value = own.ceiling.exact_match if spec is EXACT_MATCH else own.ceiling.score
            if value >= _BELOW:
                continue
            title = "log-sMAPE" if spec is LOG_SMAPE else "exact match"
            for entry in _published(spec, own.task):
                theirs = entry.tables[spec.name][own.task].value
                if abs(value - theirs) <= _NEAR:
                    task = f"{TASKS[own.task].display}, {title}"
                    rows.append([task, named(config_of(entry)), f"*{shown(theirs)}*", shown(value)])
    return rows


def examples(found: Sequence[Labels]) -> str:
    """Per task the worst label of a question that is not long; empty where there is none."""
    rows = []
    for own in found:
        brief = [fault for fault in own.wrong if len(fault.label.prompt) <= _LONGEST_QUESTION]
        if not brief:
            continue
        label, truth, error = max(brief, key=lambda w: (w.relative_error or 0.0, w.label.place))
        cells = [TASKS[own.task].display, markdown(label.prompt)]
        cells += [f"*{markdown(str(label.answer))}*", markdown(str(truth))]
        rows.append([*cells, "–" if error is None else f"{error:.1e}"])
    header = ("Task", "Question", "*Published label*", "Exact answer", "Relative error")
    return table(header, rows, 2) if rows else ""


def scores(study: Study, spec: TableSpec) -> list[str]:
    """Published → exact with its interval, three tasks a table."""
    found = study.of_table(spec.name)
    parts = []
    for group in _GROUPS:
        tasks = [task for task in group if task in found]
        if tasks:
            header = ("Model", "Reasoning", *(TASKS[task].display for task in tasks))
            rows = [
                [*map(markdown, config), *(_moved(found[task].get(config)) for task in tasks)]
                for config in study.configs
            ]
            parts.append(table(header, rows, 2))
    return parts


def _moved(score: Retaken | None) -> str:
    if score is None:
        return ""
    before = "–" if score.printed is None else f"*{score.printed}*"
    if score.reproduced is False:
        before += "†"
    value, low, high = score.estimate
    bounds = "" if low is None or high is None else f" [{shown(low)}, {shown(high)}]"
    return f"{before} → **{shown(value)}**{bounds}".replace(" → ", "&nbsp;→&nbsp;")


def mean_steps(study: Study, spec: TableSpec) -> str:
    """What each repair changes on a task, mean over the configurations."""
    rows = []
    for task, found in study.of_table(spec.name).items():
        columns = zip(*(score.ladder.steps for score in found.values()), strict=True)
        steps = [fmean(column) for column in columns]
        whole = [score.ladder.exact - score.ladder.published for score in found.values()]
        ends = f"{shown(min(whole), True)} to {shown(max(whole), True)}"
        cells = [shown(step, True) for step in steps]
        rows.append([TASKS[task].display, *cells, shown(fmean(whole), True), ends])
    header = ("Task", *(repair.name for repair in REPAIRS), "all", "all, lowest to highest")
    return table(header, rows)


def every_step(study: Study, spec: TableSpec) -> str:
    """The steps of every score that moves."""
    rows = [
        [TASKS[task].display, markdown(", ".join(config)), *_steps(score.ladder)]
        for task, found in study.of_table(spec.name).items()
        for config, score in found.items()
        if any(abs(step) >= _MOVED for step in score.ladder.steps)
    ]
    header = (
        "Task",
        "Configuration",
        "study's scoring",
        *(repair.name for repair in REPAIRS),
        "exact",
    )
    return table(header, rows, 2)


def _steps(ladder: Ladder) -> list[str]:
    steps = [shown(step, True) if step else "0" for step in ladder.steps]
    return [shown(ladder.published), *steps, shown(ladder.exact)]


def claim(own: Claim, findings: Sequence[tuple[str, Finding]]) -> str:
    """The findings of a claim on each set of scores."""
    words = {True: "holds", False: "does not hold", None: "cannot be told"}
    rows = [[on, words[found.holds], markdown(found.text)] for on, found in findings]
    return table(("On", "The claim", "Numbers"), rows, 3)


def order_counts(orders: Sequence[Order], spec: TableSpec) -> str:
    """How many pairs are told apart on each task by either scoring."""
    rows = []
    for task in TASKS:
        own = [order for order in orders if (order.table, order.task) == (spec.name, task)]
        if not own:
            continue
        change = Counter(order.change for order in own)
        kinds = (change["same"], change["lost"], change["gained"], change["reversed"])
        swapped = sum(order.swapped for order in own)
        rows.append([TASKS[task].display, str(len(own)), *map(str, kinds), str(swapped)])
    header = ("Task", "Pairs", "told apart by both", "only by the study's", "only by exact")
    return table((*header, "the other way round", "values swap places"), rows)


def changed_orders(orders: Sequence[Order], spec: TableSpec) -> str:
    """Every pair of which another order is shown; empty where there is none."""
    words = {"lost": "no longer told apart", "gained": "now told apart", "reversed": "reversed"}
    rows = [
        [
            TASKS[task].display,
            f"{markdown(order.first)} less {markdown(order.second)}",
            shown(order.before, True),
            shown(order.after, True),
            words[order.change],
        ]
        for task in TASKS
        for order in orders
        if (order.table, order.task) == (spec.name, task) and order.change in words
    ]
    header = ("Task", "Pair", "study's scoring", "exact", "")
    return table(header, rows, 2) if rows else ""


def files_csv(study: Study) -> list[list[str]]:
    """The files: name, task, bytes and SHA-256."""
    return [
        [file.source.path.name, file.source.task, str(file.size), file.digest]
        for file in study.files
    ]


def named(config: Config) -> str:
    """`GPT 5 (minimal)`, as Markdown."""
    return markdown(f"{config[0]} ({config[1]})")
