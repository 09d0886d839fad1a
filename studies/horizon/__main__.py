"""Write results/horizon-study: python -m studies.horizon FRONTIER_RESULTS."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from numbench.horizon import Limits
from numbench.horizon.adaptive import AdaptiveDesign
from numbench.horizon.goodness_of_fit import (
    DOUBTFUL,
    MISFIT,
    SizeCount,
    fit_p_value,
    isotonic_crossing,
    isotonic_rates,
)
from numbench.horizon.psychometric import LOG2_HORIZONS, Posterior, SizeEstimate
from numbench.plot_style import BLACK, FULL_WIDTH, GRAY, PALETTE
from numbench.published import published_means
from numbench.scoring import score_run
from numbench.stats.intervals import wilson
from numbench.tasks import TASKS
from studies.pages import fill, markdown_table, svg_figure, write_study_pages
from studies.raw_responses import import_study

RESULTS = Path("results/horizon-study")

STUDIED = ("addition", "multiplication", "division", "mean")
"""Tasks whose operands have 1 to 17 significant digits; lists have at most five elements."""

SIZES = tuple(range(1, 18))
LARGEST = SIZES[-1]

REPLAYS = 20
PROMPT_TOKENS = 150.0
"""Of a question with its system prompt; it hardly depends on the digits."""


class Cell(NamedTuple):
    """A configuration on a task: the curve that fits its responses, and replays of them.

    isotonic: where the isotonic regression crosses 50%; None: it does not. replays: h50, questions
    and tokens of each.
    """

    task: str
    config: str
    counts: tuple[SizeCount, ...]
    posterior: Posterior
    h50: SizeEstimate
    p_value: float
    isotonic: float | None
    tokens: float
    replays: list[tuple[SizeEstimate, int, float]]

    @property
    def verdict(self) -> str:
        """How well the curve fits."""
        return "no fit" if self.p_value < MISFIT else "doubtful" if self.p_value < DOUBTFUL else ""

    @property
    def is_measured(self) -> bool:
        """Whether h50 is below the largest size."""
        return self.h50.value < LARGEST

    @property
    def questions(self) -> int:
        """The number of responses."""
        return sum(count.total for count in self.counts)

    @property
    def median_replay(self) -> tuple[float, float]:
        """Questions and tokens of a replay, medians, relative to all responses."""
        questions, tokens = np.median([replay[1:] for replay in self.replays], axis=0)
        return questions / self.questions, tokens / self.tokens

    @property
    def coverage(self) -> float:
        """The share of replays whose interval includes the h50 of all responses."""
        return float(np.mean([includes(h50, self.h50.value) for h50, *_ in self.replays]))


def question_digits(operands: Iterable[str]) -> int:
    """Return the significant digits of the longest operand, from first to last other than 0."""
    return max(len(o.removeprefix("-").replace(".", "").strip("0")) or 1 for o in operands)


def includes(interval: SizeEstimate, size: float) -> bool:
    """Return whether an interval contains a size; all sizes beyond the largest one are equal."""
    low, high, value = (min(x, LARGEST) for x in (interval.low, interval.high, size))
    return low <= value <= high


def read_responses(folder: Path) -> pd.DataFrame:
    """Return the responses in the paper's files, one row each, scored by exact answers."""
    rows = []
    with tempfile.TemporaryDirectory() as runs:
        scored = [score_run(path) for path in import_study(folder, Path(runs), lambda _: None)]
        order = list(published_means())
        for run in sorted(scored, key=lambda r: order.index((r.info.display, r.info.reasoning))):
            config = f"{run.info.display} · {run.info.reasoning}"
            for task in STUDIED:
                for row in run.rows.get(task, ()):
                    tokens = row.response.usage.generated if row.response else None
                    digits = question_digits(row.item.operands)
                    correct = float(row.score.exact_match)
                    rows.append((task, config, digits, correct, float(tokens or 0)))
    return pd.DataFrame(rows, columns=["task", "config", "digits", "correct", "tokens"])


def measure_cell(task: str, config: str, responses: pd.DataFrame, replays: int) -> Cell:
    """Fit a curve to the responses of a configuration, and replay them."""
    counts = tuple(
        SizeCount(int(of["digits"].iloc[0]), float(of["correct"].sum()), len(of))
        for _, of in responses.groupby("digits")
    )
    posterior = Posterior(SIZES)
    for count in counts:
        posterior.update(count.size, count.right, count.total - count.right)
    rng = np.random.default_rng(1)
    return Cell(
        task,
        config,
        counts,
        posterior,
        posterior.horizon(),
        fit_p_value(posterior, counts),
        isotonic_crossing(counts),
        float((PROMPT_TOKENS + responses["tokens"]).sum()),
        [replay(responses.iloc[rng.permutation(len(responses))]) for _ in range(replays)],
    )


def replay(responses: pd.DataFrame) -> tuple[SizeEstimate, int, float]:
    """Let the adaptive procedure choose sizes, and give it the next recorded response of each.

    Returns h50, and the questions and tokens that it took.
    """
    unseen = {
        size: of[["correct", "tokens"]].to_numpy().tolist()[::-1]
        for size, of in responses.groupby("digits")
    }
    design = AdaptiveDesign(
        SIZES, [0.0] * len(SIZES), [PROMPT_TOKENS] * len(SIZES), [20.0] * len(SIZES)
    )
    for size in SIZES:
        if size not in unseen:
            design.exhaust(size)
    limits = Limits(max_items=len(responses))
    used = 0.0
    while design.stop_reason(limits) is None:
        design.begin_round()
        for size in design.next_round()[: limits.max_items - design.completed]:
            # A round may choose a size more often than it has questions.
            if unseen[size]:
                correct, tokens = unseen[size].pop()
                design.record(size, correct, int(tokens))
                used += PROMPT_TOKENS + tokens
            if not unseen[size]:
                design.exhaust(size)
    return design.posterior.horizon(), design.completed, used


def render(responses: pd.DataFrame, replays: int = REPLAYS) -> dict[str, bytes]:
    """Return the page, its figures and its data, by name."""
    cells = [
        measure_cell(str(task), str(config), of, replays)
        for (task, config), of in responses.groupby(["task", "config"], sort=False)
    ]
    cells.sort(key=lambda cell: STUDIED.index(cell.task))
    files: dict[str, bytes] = {}
    for task in ("multiplication", "division"):
        draw_curves(files, task, [cell for cell in cells if cell.task == task])
    draw_replays(files, cells)
    files["horizons.csv"] = csv_frame(cells).to_csv(index=False).encode()
    division = responses[responses["task"] == "division"].groupby("config")["digits"]
    long_questions = int(division.agg(lambda digits: (digits >= 15).sum()).iloc[0])
    measured = [cell for cell in cells if cell.is_measured]
    values = {
        "horizons": markdown_table(horizon_table(cells)),
        "replays": markdown_table(replay_table(cells)),
        "fit": fit_text(cells),
        "replay_count": str(replays),
        "coverage": f"{np.mean([cell.coverage for cell in cells]):.1%}",
        "all_replays": f"{len(cells) * replays:,}",
        "measured": str(len(measured)),
        "measured_coverage": f"{np.mean([cell.coverage for cell in measured]):.1%}",
        "long_divisions": f"{long_questions} of {int(division.size().iloc[0])}",
    }
    return {"README.md": fill(Path(__file__).with_name("page.md"), values), **files}


def size_text(size: float) -> str:
    """Return a size, or that it is beyond the sizes of the questions."""
    if size >= LARGEST:
        return f"≥ {LARGEST}"
    return f"{size:.1f}" if size >= SIZES[0] else f"< {SIZES[0]}"


def horizon_table(cells: list[Cell]) -> pd.DataFrame:
    """Return h50 of every configuration and task."""
    configs = list(dict.fromkeys(cell.config for cell in cells))
    table = pd.DataFrame("no responses", index=pd.Index(configs, name="Model"), columns=STUDIED)
    for cell in cells:
        low, high = size_text(cell.h50.low), size_text(cell.h50.high)
        verdict = f", {cell.verdict}" if cell.verdict else ""
        text = f"{size_text(cell.h50.value)} [{low}, {high}]{verdict}"
        table.loc[cell.config, cell.task] = f"≥ {LARGEST}{verdict}" if low == high else text
    return table.rename(columns=display)


def replay_table(cells: list[Cell]) -> pd.DataFrame:
    """Return per task what replays take, apart for horizons below and beyond the largest size."""
    rows = {}
    for task in STUDIED:
        for is_measured, name in ((True, f"h50 below {LARGEST}"), (False, "beyond")):
            of = [c for c in cells if c.task == task and c.is_measured == is_measured]
            if of:
                used = np.median([cell.median_replay for cell in of], axis=0)
                covered = np.mean([cell.coverage for cell in of])
                cell_values = [len(of), *(f"{x:.0%}" for x in (*used, covered))]
                rows[f"{display(task)}, {name}"] = cell_values
    columns = ["Models", "Questions", "Tokens", "Includes h50"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def display(task: str) -> str:
    """Return the displayed name of a task."""
    return TASKS[task].display


def fit_text(cells: list[Cell]) -> str:
    """Return how many curves fit, by task."""
    parts = []
    for task in STUDIED:
        of = [cell.verdict for cell in cells if cell.task == task]
        if of:
            bad, doubtful = of.count("no fit"), of.count("doubtful")
            parts.append(
                f"{display(task)} {of.count('')} of {len(of)}"
                + (f" ({bad} no fit, {doubtful} doubtful)" if bad + doubtful else "")
            )
    fitting = sum(not cell.verdict for cell in cells)
    return f"The logistic curve fits in {fitting} of {len(cells)} cases: {', '.join(parts)}."


def mean_slope(posterior: Posterior) -> float:
    """Return the slope with the posterior mean of log β."""
    slopes = np.log2(posterior.grid.slopes)
    shape = (len(LOG2_HORIZONS), len(slopes), -1)
    return float(2 ** (posterior._weights.reshape(shape).sum(axis=(0, 2)) @ slopes))


def csv_frame(cells: list[Cell]) -> pd.DataFrame:
    """Return all numbers of the tables, unrounded sizes included; sizes are digits."""
    return pd.DataFrame(
        {
            "task": cell.task,
            "model": cell.config,
            "questions": cell.questions,
            **dict(zip(("h50", "h50_low", "h50_high"), np.round(cell.h50, 3), strict=True)),
            "h90": round(cell.posterior.horizon(0.9).value, 3),
            "slope": round(mean_slope(cell.posterior), 3),
            "fit_p": round(cell.p_value, 3),
            "isotonic_h50": None if cell.isotonic is None else round(cell.isotonic, 3),
            "replay_questions": round(cell.median_replay[0], 3),
            "replay_tokens": round(cell.median_replay[1], 3),
            "replays_that_include_h50": cell.coverage,
        }
        for cell in cells
    )


def draw_curves(files: dict[str, bytes], task: str, cells: list[Cell]) -> None:
    """Draw the correct answers of a task over the digits, a panel per configuration."""
    rows = -(-len(cells) // 4)
    with svg_figure(files, f"curves-{task}.svg", (FULL_WIDTH, 1.3 * rows + 0.7)) as figure:
        panels = figure.subplots(rows, 4, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in panels[len(cells) :]:
            axes.set_axis_off()
        for axes, cell in zip(panels, cells, strict=False):
            draw_curve(axes, cell)
        figure.supxlabel("significant digits of the longest operand")
        figure.supylabel(f"{display(task)}: correct answers, %")
        handles = [
            Line2D([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="responses"),
            Line2D([], [], color=PALETTE[0], label="logistic curve"),
            Patch(facecolor=PALETTE[0], alpha=0.2, label="its 95% interval"),
            Line2D([], [], color=PALETTE[1], linestyle="--", label="isotonic regression"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4)


def draw_curve(axes: Axes, cell: Cell) -> None:
    """Draw the curve and the responses of a configuration."""
    draws = cell.posterior.sample_predictions(2000)
    low, middle, high = 100 * np.quantile(draws, (0.025, 0.5, 0.975), axis=0)
    axes.fill_between(SIZES, low, high, color=PALETTE[0], alpha=0.2, linewidth=0)
    axes.plot(SIZES, middle, color=PALETTE[0])
    sizes = [count.size for count in cell.counts]
    isotonic = 100 * np.asarray(isotonic_rates(cell.counts))
    axes.plot(sizes, isotonic, color=PALETTE[1], linestyle="--", linewidth=0.9)
    for count in cell.counts:
        interval = wilson(round(count.right), count.total)
        axes.plot([count.size] * 2, [100 * x for x in interval[-2:]], color=GRAY, linewidth=0.5)
        size = min(1 + 0.3 * count.total**0.5, 4)
        axes.plot(
            [count.size], [100 * count.right / count.total], "o", color=BLACK, markersize=size
        )
    axes.axhline(50, color=GRAY, linewidth=0.4)
    axes.set_title(cell.config, fontsize=6.5)
    axes.set_ylim(-4, 104)
    label_sizes(axes)


def label_sizes(axes: Axes) -> None:
    """Make the x axis logarithmic, with the sizes 1, 2, 4, 8 and 16."""
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.set_xticks([], minor=True)


def draw_replays(files: dict[str, bytes], cells: list[Cell]) -> None:
    """Draw h50 from all responses and from the first replay, with 95% intervals."""
    configs = list(dict.fromkeys(cell.config for cell in cells))
    edge = LARGEST * 1.12
    with svg_figure(files, "replays.svg", (FULL_WIDTH, 0.24 * len(configs) + 0.9)) as figure:
        panels = figure.subplots(1, len(STUDIED), sharey=True)
        for axes, task in zip(panels, STUDIED, strict=True):
            for cell in (cell for cell in cells if cell.task == task):
                for index, h50 in enumerate((cell.h50, cell.replays[0][0])):
                    row, color = configs.index(cell.config) + 0.3 * index - 0.15, PALETTE[index]
                    value, low, high = (
                        min(max(x, 1.0), edge) for x in (h50.value, h50.low, h50.high)
                    )
                    marker = ">" if value == edge else "o"
                    axes.plot([low, high], [row, row], color=color, linewidth=1)
                    axes.plot([value], [row], marker, color=color, markersize=3)
            axes.axvline(LARGEST, color=GRAY, linewidth=0.4)
            axes.set_title(display(task))
            axes.set_xlim(1, edge * 1.06)
            label_sizes(axes)
            axes.set_yticks(range(len(configs)), configs)
            axes.tick_params(axis="y", length=0)
        panels[0].invert_yaxis()
        figure.supxlabel("h50, in significant digits of the longest operand")
        handles = [
            Line2D([], [], color=PALETTE[index], marker="o", markersize=3, label=label)
            for index, label in enumerate(("all responses", "one replay"))
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return write_study_pages(
        "studies.horizon",
        __doc__,
        lambda folder: render(read_responses(folder)),
        RESULTS,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
