"""Write results/multitask from the stored runs: python -m studies.multitask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.lines import Line2D

from numbench.plot_style import FULL_WIDTH, PALETTE
from numbench.stats.intervals import wilson
from studies.multitask.runs import RESULTS, RUNS
from studies.pages import fill, markdown_table, svg_figure, write_files

MINIMUM = "minimum"
TASKS = {
    "minmax": "MinMax", "interval": "Interval", "sorting": "Sorting", "addition": "Add",
    "multiplication": "Mult",
}  # fmt: skip
MEASURES = {
    "minmax": "MinMax", "interval": "Interval", "sorting": "Sorting", "+": "Add, sums",
    "-": "Add, differences", "multiplication": "Mult",
}  # fmt: skip
"""Tasks, and the operators of Add."""

TITLES = {
    "bittoken": "BitTokens", "fone": "FoNE", "digit": "digits", "xval": "xVal",
    "no-reciprocal": "BitTokens without reciprocal", "aligned": "aligned bits (control)",
    "wide": "BitTokens, width 256", "bittoken-x3": "BitTokens, rates × 3",
    "fone-x3": "FoNE, rates × 3", "digit-x3": "digits, rates × 3",
}  # fmt: skip
RIVALS = ("fone", "digit")
SWEPT = ("bittoken", *RIVALS)
"""The encodings that were trained with two learning rates."""

CONTROLS = (("no-reciprocal", "bittoken"), ("aligned", "no-reciprocal"), ("wide", "bittoken"))
"""A control and the run that it is compared with, which differs in one setting."""


class Run(NamedTuple):
    """A complete run.

    kind: its name without the seed. questions: seen in training. levels: those of the curriculum on
    Mult that were unlocked at the end, and all. score: the mean of the tasks' scores in the last
    validation. curve: its validations, as questions and exact match by measure. scores: correct
    answers and questions by task and measure.
    """

    kind: str
    seed: int
    questions: int
    levels: tuple[int, int]
    score: float
    curve: Sequence[tuple[int, Mapping[str, float]]]
    scores: Mapping[str, tuple[int, int]]

    @property
    def title(self) -> str:
        """What the page calls it."""
        return f"{TITLES[self.kind]}, seed {self.seed}"

    def exact(self, measure: str) -> float:
        """Return the exact match in percent of a task, an operator of Add, or the minimum."""
        if measure == MINIMUM:
            return min(self.exact(task) for task in TASKS)
        correct, questions = self.scores[measure]
        return 100 * correct / questions

    def interval(self, measure: str) -> tuple[float, float]:
        """Return the 95% interval of a task or operator over questions, in percent."""
        *_, low, high = wilson(*self.scores[measure])
        return 100 * low, 100 * high


def read_run(run: Path) -> Run | None:
    """Return a stored run, None if it is not complete."""
    kind, _, seed = run.name.rpartition("-")
    if not (run / "scores.json").is_file():
        return None
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries: list[dict[str, Any]] = [entry for entry in map(json.loads, lines) if "tasks" in entry]
    curve = []
    for entry in entries:
        exact = {task: entry["tasks"][task]["exact"] for task in TASKS}
        exact |= entry["tasks"]["addition"]["operators"]
        curve.append((entry["questions"], exact))
    tasks = json.loads((run / "scores.json").read_text(encoding="utf-8"))["tasks"]
    parts = {**tasks, **tasks["addition"]["operators"]}
    scores = {name: (part["correct"], part["questions"]) for name, part in parts.items()}
    last = entries[-1]["tasks"]
    levels = last["multiplication"]["frontier"] + 1, last["multiplication"]["levels"]
    score = sum(last[task]["score"] for task in TASKS) / len(TASKS)
    return Run(kind, int(seed), curve[-1][0], levels, score, curve, scores)


def read_runs(folder: Path) -> list[Run]:
    """Return the complete runs, kinds in the order of TITLES.

    Raises ValueError if they did not see equally many questions.
    """
    runs = [run for name in RUNS if (run := read_run(folder / "runs" / name)) is not None]
    if len({run.questions for run in runs}) > 1:
        raise ValueError(f"{folder}: the runs did not see equally many questions")
    return sorted(runs, key=lambda run: (list(TITLES).index(run.kind), run.seed))


def short_runs(folder: Path) -> list[Run]:
    """Return the runs of the second version of the plan, which were shorter."""
    runs = (read_run(path.parent) for path in sorted(folder.glob("short/*/scores.json")))
    return [run for run in runs if run is not None]


def of_kind(runs: Sequence[Run], kind: str) -> list[Run]:
    """Return the runs of a kind."""
    return [run for run in runs if run.kind == kind]


def at_better_rate(runs: Sequence[Run], encoding: str) -> list[Run]:
    """Return the runs of an encoding with the better of its learning rates, by validation."""
    kinds = [group for kind in (encoding, f"{encoding}-x3") if (group := of_kind(runs, kind))]
    return max(kinds, key=lambda group: group[0].score, default=[])


def verdict(runs: Sequence[Run], rival: str, measure: str) -> str:
    """Return the statement of the plan about BitTokens and a rival."""
    own, others = at_better_rate(runs, "bittoken"), at_better_rate(runs, rival)
    if len(own) == len(others) == 1 and measure != MINIMUM:
        return separation(own[0], others[0], measure)
    ranges = [sorted(run.exact(measure) for run in group) for group in (own, others)]
    several = len(own) > 1 and len(others) > 1
    if ranges[0][0] > ranges[1][-1]:
        return "BitTokens lead" if several else "above"
    if ranges[0][-1] < ranges[1][0]:
        return "BitTokens trail" if several else "below"
    return "not separated"


def separation(run: Run, other: Run, measure: str) -> str:
    """Return whether the intervals of two runs over questions overlap, and their order."""
    (low, high), (other_low, other_high) = run.interval(measure), other.interval(measure)
    if low > other_high:
        return "above"
    return "below" if high < other_low else "not separated"


def score_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the exact match of each run."""
    rows = {
        run.title: [*(f"{run.exact(measure):.1f}" for measure in (MINIMUM, *MEASURES)),
                    f"{100 * run.score:.1f}", f"{run.levels[0]} of {run.levels[1]}"]
        for run in runs
    }  # fmt: skip
    columns = ["Minimum", *MEASURES.values(), "validation score", "levels of Mult"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def question_table(runs: Sequence[Run], target: float = 0.5) -> pd.DataFrame:
    """Return the questions seen at the first validation of each run that reaches the target."""
    rows = {}
    for run in runs:
        first = {m: next((n for n, of in run.curve if of[m] >= target), None) for m in MEASURES}
        rows[run.title] = [f"{n:,}" if n else "not reached" for n in first.values()]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*MEASURES.values()])


def verdict_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the statements about BitTokens, and how likely equal encodings give one."""
    measures = {MINIMUM: "minimum of the five tasks", **MEASURES}
    columns = {}
    for rival in RIVALS:
        own, others = (at_better_rate(runs, encoding) for encoding in ("bittoken", rival))
        seeds = len(own), len(others)
        chance = str(Fraction(2, comb(sum(seeds), seeds[0])))
        rows = {title: verdict(runs, rival, measure) for measure, title in measures.items()}
        columns[f"{TITLES[own[0].kind]} and {TITLES[others[0].kind]}"] = rows | {
            "probability that either leads if equal": chance if min(seeds) > 1 else "no verdict"
        }
    return pd.DataFrame(columns)


def control_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return how each control differs from the run it is compared with."""
    rows = {}
    for control, reference in CONTROLS:
        runs_of = [of_kind(runs, kind)[:1] for kind in (control, reference)]
        for own, other in zip(*runs_of, strict=True) if all(runs_of) else ():
            rows[f"{TITLES[control]} against {TITLES[reference]}"] = [
                f"{own.exact(m):.1f} against {other.exact(m):.1f}: {separation(own, other, m)}"
                for m in ("+", "-", "multiplication")
            ]
    titles = [MEASURES[measure] for measure in ("+", "-", "multiplication")]
    return pd.DataFrame.from_dict(rows, orient="index", columns=titles)


def earlier_table(folder: Path) -> pd.DataFrame:
    """Return the exact match of the earlier runs, which are affected by the fault."""
    rows = {}
    for scores in sorted(folder.glob("earlier/*/scores.json")):
        kind, _, seed = scores.parent.name.rpartition("-")
        tasks = json.loads(scores.read_text(encoding="utf-8"))["tasks"]
        exact = [100 * tasks[task]["correct"] / tasks[task]["questions"] for task in TASKS]
        rows[f"{TITLES[kind]}, seed {seed}"] = [f"{value:.1f}" for value in (min(exact), *exact)]
    columns = ["Minimum", *(title if title != "Add" else "Add, both" for title in TASKS.values())]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def gpu_values(folder: Path) -> dict[str, str]:
    """Return what the page says of the comparison on a GPU: its card, sizes and scores."""
    content = json.loads((folder / "gpu" / "scores.json").read_text(encoding="utf-8"))
    rows = {}
    for kind, result in content["results"].items():
        lines = (folder / "gpu" / f"{kind}-metrics.jsonl").read_text(encoding="utf-8").splitlines()
        started, *_, last = map(json.loads, lines)
        tasks = result["tasks"].values()
        rows[TITLES[kind]] = [
            *(f"{100 * task['correct'] / task['questions']:.1f}" for task in tasks),
            f"{last['seconds']:.0f}", f"{content['questions_per_second'][kind]:,.0f}",
        ]  # fmt: skip
    titles = [TASKS.get(task, "Div") for task in result["tasks"]]
    columns = [*titles, "seconds of training", "questions per second, measured before"]
    return {
        "gpu": markdown_table(pd.DataFrame.from_dict(rows, orient="index", columns=columns)),
        "gpu_card": content["device"], "gpu_torch": content["torch"],
        "gpu_seen": f"{last['questions']:,}", "gpu_steps": f"{last['step']}",
        "gpu_parameters": f"{started['parameters'] / 1e6:.1f}",
    }  # fmt: skip


def as_range(runs: Sequence[Run], measure: str) -> str:
    """Return the exact match of runs: one value, or the lowest and the highest."""
    values = [run.exact(measure) for run in runs]
    if not values:
        return "(no run)"
    if len(values) == 1:
        return f"{values[0]:.1f}%"
    return f"{min(values):.1f} to {max(values):.1f}%"


def exact_values(runs: Sequence[Run]) -> dict[str, str]:
    """Return what the pages say in sentences: exact match by kind and measure, questions seen."""
    names = {"sums": "+", "differences": "-", "products": "multiplication", "minimum": MINIMUM}
    values = {
        f"{kind.replace('-', '_')}_{name}": as_range(at_better_rate(runs, kind), measure)
        for kind in TITLES
        for name, measure in names.items()
    }
    learned = sum(run.exact("+") > 50 for run in of_kind(runs, "fone"))
    return {
        **values,
        "seen": f"{runs[0].questions:,}",
        "fone_learned": ("none", "one", "two", "three")[learned],
    }


def draw(files: dict[str, bytes], runs: Sequence[Run]) -> None:
    """Draw the exact match of each run, and its validations on sums over the questions seen.

    Of an encoding with two learning rates, the better one is drawn.
    """
    worse = {kind for each in SWEPT for kind in (each, f"{each}-x3")} - {
        run.kind for each in SWEPT for run in at_better_rate(runs, each)
    }
    drawn = [run for run in runs if run.kind not in worse]
    kinds = [kind for kind in TITLES if kind in {run.kind for run in drawn}]
    colors = dict(zip(TITLES, PALETTE, strict=False))
    with svg_figure(files, "scores.svg", (FULL_WIDTH, 3.2)) as figure:
        scores, curves = figure.subplots(1, 2, width_ratios=(1.6, 1))
        for number, kind in enumerate(kinds):
            for run in of_kind(drawn, kind):
                x = [
                    index + 0.11 * (number - (len(kinds) - 1) / 2) for index in range(len(MEASURES))
                ]
                y = [run.exact(measure) for measure in MEASURES]
                bounds = [run.interval(measure) for measure in MEASURES]
                errors = [[v - low for v, (low, _) in zip(y, bounds, strict=True)],
                          [high - v for v, (_, high) in zip(y, bounds, strict=True)]]  # fmt: skip
                style = {"color": colors[kind], "markersize": 3.5, "linewidth": 0.8}
                scores.errorbar(x, y, errors, fmt=marker(kind), **style)
                questions = [n / 1000 for n, _ in run.curve]
                validated = [100 * of["+"] for _, of in run.curve]
                curves.plot(questions, validated, linestyle(kind), color=colors[kind], linewidth=1)
        scores.set_xticks(range(len(MEASURES)), [m.replace(", ", ",\n") for m in MEASURES.values()])
        scores.set_ylabel("exact match, %")
        curves.set(xlabel="questions seen, thousands", ylabel="sums, exact match in validation, %")
        for axes in (scores, curves):
            axes.set_ylim(-2, 102)
            axes.grid(visible=True, axis="y")
        handles = [
            Line2D([], [], color=colors[kind], marker=marker(kind), ls=linestyle(kind), ms=3.5,
                   label=TITLES[kind])
            for kind in kinds
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside upper center", ncols=4)


def marker(kind: str) -> str:
    """Return the marker of a kind: circles for encodings, triangles for controls."""
    return "o" if kind.removesuffix("-x3") in ("bittoken", *RIVALS, "xval") else "^"


def linestyle(kind: str) -> str:
    """Return the line style of a kind: dashes for controls."""
    return "-" if marker(kind) == "o" else "--"


def render(folder: Path) -> dict[str, bytes]:
    """Return the page and its figure, by name."""
    runs = read_runs(folder)
    missing = [name for name in RUNS if read_run(folder / "runs" / name) is None]
    files: dict[str, bytes] = {}
    draw(files, runs)
    margin = max(
        max(run.exact(m) - run.interval(m)[0], run.interval(m)[1] - run.exact(m))
        for run in runs
        for m in MEASURES
    )
    tables = {
        "scores": score_table(runs), "questions": question_table(runs),
        "verdicts": verdict_table(runs), "controls": control_table(runs),
        "earlier": earlier_table(folder),
        "short": score_table(short_runs(folder)),
    }  # fmt: skip
    values = {
        **exact_values(runs),
        **gpu_values(folder),
        **{name: markdown_table(table) for name, table in tables.items()},
        "margin": f"{margin:.1f}",
        "missing": f"Planned, but not complete in the time: {', '.join(missing)}."
        if missing
        else "All planned runs are complete.",
    }
    return {"README.md": fill(Path(__file__).with_name("page.md"), values), **files}


if __name__ == "__main__":
    write_files(RESULTS, render(RESULTS))
