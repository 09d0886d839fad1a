"""Write results/products from the stored logs: python -m studies.products."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from scipy.stats import t

from numbench.plot_style import FULL_WIDTH, GRAY, PALETTE
from studies.pages import fill, markdown_table, svg_figure, write_files

RESULTS = Path("results/products")
TITLES = {
    "bittoken": "BitToken",
    "digit": "Digit",
    "fone": "FoNE",
    "subword": "Subword",
    "base10": "Base 10",
}
RIVALS = tuple(TITLES)[1:]
TARGETS = tuple(range(10, 90, 10))
"""Levels of exact match in percent that every BitToken network reaches."""


def read_logs(folder: Path) -> pd.DataFrame:
    """Return the validations of all trainings in a folder, one row each, exact match in percent."""
    rows = []
    for path in sorted(folder.glob("*/metrics.jsonl")):
        # RUN is multiplication-8-ENCODING-sSEED or rate-ENCODING-xFACTOR.
        run = path.parent.name
        encoding, variant = run.split("-")[-2:]
        for entry in pd.read_json(path, lines=True).to_dict("records"):
            if isinstance(entry["tasks"], dict):
                ((task, scores),) = entry["tasks"].items()
                questions, exact = int(entry["questions"]), 100 * scores["exact"]
                rows.append((run, task, encoding, variant[1:], questions, exact))
    columns = ["run", "task", "encoding", "variant", "questions", "exact"]
    return pd.DataFrame(rows, columns=columns)


def questions_to(run: pd.DataFrame, target: float) -> int | None:
    """Return the questions until the first of two validations in a row that reach a target."""
    reached = run["exact"].to_numpy() >= target
    first = np.flatnonzero(reached[:-1] & reached[1:])
    return int(run["questions"].iloc[first[0]]) if len(first) else None


def final(run: pd.DataFrame) -> float:
    """Return the mean exact match of the last three validations."""
    return float(run["exact"].tail(3).mean())


def geometric_mean(values: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean with its 95% interval, Student's t on the logarithms."""
    logs = np.log(values)
    margin = t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    mean = logs.mean()
    return float(np.exp(mean)), float(np.exp(mean - margin)), float(np.exp(mean + margin))


def ratio(logs: pd.DataFrame, rival: str, target: int) -> tuple[str, float]:
    """Return how many times as many questions a rival needs, paired by seed, and the lower bound.

    A seed of the rival that misses the target counts with its last validation, which makes the
    ratio and its lower bound lower bounds, and leaves no upper one.
    """
    needed = {}
    missed = False
    for encoding in ("bittoken", rival):
        for seed, run in logs[logs["encoding"] == encoding].groupby("variant"):
            questions = questions_to(run, target)
            missed |= questions is None
            needed[encoding, seed] = questions or int(run["questions"].iloc[-1])
    seeds = [seed for encoding, seed in needed if encoding == rival]
    pairs = [needed[rival, seed] / needed["bittoken", seed] for seed in seeds]
    mean, low, high = geometric_mean(pairs)
    text = f"≥ × {mean:.1f} (≥ {low:.2f})" if missed else f"× {mean:.1f} ({low:.2f}–{high:.2f})"
    return text, low


def render(folder: Path) -> dict[str, bytes]:
    """Return the page and its figure, by name."""
    runs, sweep = read_logs(folder / "runs"), read_logs(folder / "sweep")
    products = runs[runs["task"] == "multiplication"]
    budget = int(products["questions"].max())
    table = pd.DataFrame(index=pd.Index([], name=""), columns=list(TITLES.values()))
    ends = {
        encoding: [final(run) for _, run in of.groupby("variant")]
        for encoding, of in products.groupby("encoding")
    }
    table.loc["Exact match at the end, %"] = [" ".join(f"{x:.1f}" for x in ends[e]) for e in TITLES]
    bounds = []
    bittoken = products[products["encoding"] == "bittoken"].groupby("run")
    for target in TARGETS:
        reached = [questions_to(run, target) for _, run in bittoken]
        mean, low, high = geometric_mean([n for n in reached if n])
        cells = [f"{mean / 1000:.0f}k ({low / 1000:.0f}k–{high / 1000:.0f}k)"]
        for rival in RIVALS:
            text, bound = ratio(products, rival, target)
            bounds.append(bound)
            cells.append(text)
        table.loc[f"Questions to {target}%"] = cells
    sweep["factor"] = sweep["variant"].astype(float)
    rates = sweep.groupby(["factor", "encoding"])[["exact"]].apply(final).unstack()
    for factor in rates.index:
        table.loc[f"Sweep, rates × {factor:g}, %"] = [f"{rates.loc[factor, e]:.1f}" for e in TITLES]
    files: dict[str, bytes] = {}
    draw_curves(files, products)
    values = {
        "table": markdown_table(table),
        "budget": f"{budget:,}",
        "lead": lead_text(bounds),
        "xval": f"{ends['xval'][0]:.1f}%",
        "worst_rate": f"{rates['bittoken'].min():.1f}%",
        "best_rival_rate": f"{rates[list(RIVALS)].max().max():.1f}%",
        "rates": ", ".join(f"{TITLES[e]} × {rates[e].idxmax():g}" for e in TITLES),
        "reached_90": reached_90_text(products),
        "sweep_budget": f"{int(sweep['questions'].max()):,}",
        **network_values(folder / "runs"),
        **sums_values(runs[runs["task"] == "addition"]),
    }
    return {"README.md": fill(Path(__file__).with_name("page.md"), values), **files}


def lead_text(bounds: list[float]) -> str:
    """Return the sentence about who needs the fewest questions."""
    above = sum(bound > 1 for bound in bounds)
    if above == len(bounds):
        return (
            f"BitTokens need the fewest questions at every target from {TARGETS[0]}% to "
            f"{TARGETS[-1]}%: the lower bounds of all {len(bounds)} ratios are above 1 (the "
            f"smallest is {min(bounds):.2f})."
        )
    return f"{above} of {len(bounds)} ratios have a lower bound above 1."


def reached_90_text(products: pd.DataFrame) -> str:
    """Return which trainings reach 90%, and after how many questions."""
    reached = [
        f"{TITLES[str(encoding)]} (seed {seed}, {questions:,} questions)"
        for (encoding, seed), run in products.groupby(["encoding", "variant"])
        if (questions := questions_to(run, 90))
    ]
    return f"Only {', '.join(reached)} got there." if reached else "No training got there."


def network_values(folder: Path) -> dict[str, str]:
    """Return the width of the network of base 10, and the parameters of all networks."""
    parameters = {}
    for encoding in TITLES:
        started = (folder / f"multiplication-8-{encoding}-s1/metrics.jsonl").open().readline()
        parameters[encoding] = json.loads(started)["parameters"]
    recipe = json.loads((folder / "multiplication-8-base10-s1/recipe.json").read_text())
    others = [count for encoding, count in parameters.items() if encoding != "base10"]
    return {
        "base10_width": str(recipe["model"]["width"]),
        "base10_parameters": f"{parameters['base10']:,}",
        "other_parameters": f"{min(others):,} to {max(others):,}",
    }


def sums_values(sums: pd.DataFrame) -> dict[str, str]:
    """Return what the page says about sums, with one seed each."""
    runs = {str(encoding): run for encoding, run in sums.groupby("encoding")}
    reached = questions_to(runs["digit"], 90)
    return {
        "sums_digit": f"{reached:,}" if reached else "never",
        "sums_bittoken": f"{final(runs['bittoken']):.1f}%",
        "sums_questions": f"{int(runs['bittoken']['questions'].iloc[-1]):,}",
    }


def draw_curves(files: dict[str, bytes], products: pd.DataFrame) -> None:
    """Draw exact match over the questions seen, a line per training."""
    with svg_figure(files, "curves.svg", (FULL_WIDTH, 2.8)) as figure:
        axes = figure.add_subplot()
        for color, encoding in zip(PALETTE, TITLES, strict=False):
            for _, run in products[products["encoding"] == encoding].groupby("variant"):
                axes.plot(run["questions"] / 1000, run["exact"], color=color, linewidth=0.8)
        for target in (TARGETS[0], TARGETS[-1]):
            axes.axhline(target, color=GRAY, linewidth=0.5, linestyle=":")
        axes.set(ylim=(-2, 100), xlim=(0, products["questions"].max() / 1000))
        axes.set_xlabel("questions seen, thousands")
        axes.set_ylabel("exact match on held-out pairs, %")
        handles = [
            Line2D([], [], color=color, label=title)
            for color, title in zip(PALETTE, TITLES.values(), strict=False)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    write_files(folder, render(folder))
