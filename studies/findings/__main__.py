"""Write docs/results.md from the committed tables: python -m studies.findings [LLMMATH.jsonl]."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from numbench.plot_style import BLACK, FULL_WIDTH, GRAY, PALETTE
from numbench.tasks import TASKS
from studies.csv_tables import each_row, read_tables, to_csv
from studies.multitask.__main__ import exact_values, read_runs
from studies.multitask.runs import RESULTS as MULTITASK
from studies.pages import fill, svg_figure, write_files

PAGE, RESULTS = "docs/results.md", Path("results/findings")
PAPER = Path("datasets/paper")
COMPLETE = (
    "minmax",
    "interval",
    "sorting",
    "addition",
    "multiplication",
    "division",
    "mean",
    "std",
)
"""All but Exp, for which the responses of GPT 5 (maximal) are not public."""

LEVELS = (("GPT 5", "minimal"), ("Gemini 2.5 Pro", "minimal"), ("Gemini 2.5 Flash", "none"))
"""The lower level of each model with complete responses at two levels; the other is maximal."""

LABELED = ("addition", "multiplication", "division", "exponentiation", "mean", "std")
"""The tasks with wrong labels."""

_NORMAL = 1.959964
_TICKS = (10, 30, 100, 300, 1000, 3000, 10_000)
_LABELS_ON_THE_LEFT = ("DeepSeek v3.1 (none)", "Llama 4 Maverick (none)", "GPT OSS 120B (maximal)")


def item_scores() -> pd.DataFrame:
    """Return the scores of the eight tasks in percent, one row per configuration and question.

    draw: the operands; questions of several tasks may share them.
    """
    scores = pd.read_parquet(PAPER / "scores.parquet")
    items = [
        json.loads(line)
        for task in COMPLETE
        for line in (PAPER / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    draws = {item["id"]: " ".join(item["operands"]) for item in items}
    scores = scores[scores["task"].isin(COMPLETE)].copy()
    scores["config"] = scores["display"] + " (" + scores["level"] + ")"
    scores["draw"] = scores["item_id"].map(draws)
    scores["score"] = 100 * scores["log_smape"].fillna(scores["exact_match"].astype(float))
    answered = ~scores["error_kind"].isin(["missing", "error"])
    return scores[answered]


def mean_of_tasks(values: pd.DataFrame) -> tuple[float, float, float]:
    """Return the mean over the tasks of the means of `value`, and its 95% interval.

    Questions with the same operands count as one draw (cluster-robust variance).
    """
    by_task = values.groupby("task")["value"]
    means, sizes = by_task.transform("mean"), by_task.transform("size")
    parts = (values["value"] - means) / sizes / values["task"].nunique()
    error = float(np.sqrt((parts.groupby(values["draw"]).sum() ** 2).sum()))
    mean = float(by_task.mean().mean())
    return mean, mean - _NORMAL * error, mean + _NORMAL * error


def score_and_tokens(scores: pd.DataFrame) -> pd.DataFrame:
    """Return score and tokens of each configuration with responses to all eight tasks."""
    rows = []
    for config, of in scores.groupby("config", sort=False):
        if of["task"].nunique() == len(COMPLETE):
            tokens = of.dropna(subset="generated_tokens").groupby("task")["generated_tokens"]
            cost = of["cost"]
            known = cost.notna().mean() > 0.99
            usd = 1000 * of.groupby("task")["cost"].mean().mean() if known else None
            score = mean_of_tasks(of.assign(value=of["score"]))
            rows.append((config, *score, tokens.mean().mean(), tokens.median().mean(), usd))
    columns = ["config", "score", "low", "high", "tokens", "median_tokens", "usd_per_1000"]
    return pd.DataFrame(rows, columns=columns).sort_values("score", ascending=False)


def steps(scores: pd.DataFrame, of_all: pd.DataFrame) -> pd.DataFrame:
    """Return what maximal reasoning gains on the same questions, in points, and its tokens."""
    tokens = of_all.set_index("config")["tokens"]
    rows = []
    for model, level in LEVELS:
        low, high = f"{model} ({level})", f"{model} (maximal)"
        pair = scores[scores["config"] == high].merge(
            scores[scores["config"] == low][["item_id", "score"]], on="item_id"
        )
        gain = mean_of_tasks(pair.assign(value=pair["score_x"] - pair["score_y"]))
        rows.append((model, level, *gain, tokens[high] - tokens[low]))
    return pd.DataFrame(rows, columns=["model", "level", "gain", "low", "high", "tokens"])


def other_benchmark(responses: Path) -> pd.DataFrame:
    """Return per multiplication of the other benchmark how many models are correct.

    published: by its key. exact: the exact product, without separators, is in the response.
    """
    rows = [json.loads(line) for line in responses.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        product = str(row["a"] * row["b"])
        row["exact"] = product in re.sub(r"[\s,_]", "", row["response"])
        row["question"] = f"{row['a']} × {row['b']}"
        row["product"] = row["a"] * row["b"]
    return (
        pd.DataFrame(rows)
        .groupby(["question", "product", "published_answer"], sort=False)
        .agg(
            models=("model", "size"), published=("published_correct", "sum"), exact=("exact", "sum")
        )
        .reset_index()
    )


def score_against_tokens(files: dict[str, bytes], table: pd.DataFrame) -> None:
    """Draw the score over the mean tokens, with a line between the levels of a model."""
    with svg_figure(files, "score_tokens.svg", (FULL_WIDTH, 3.6)) as figure:
        axes = figure.subplots()
        models = list(dict.fromkeys(config.rsplit(" (", 1)[0] for config in table["config"]))
        for row in each_row(table):
            model, level = row.config.rsplit(" (", 1)
            color = PALETTE[models.index(model) % len(PALETTE)]
            errors = [[row.score - row.low], [row.high - row.score]]
            marker = "o" if level == "maximal)" else "s"
            axes.errorbar(row.tokens, row.score, errors, color=color, marker=marker, ms=5, lw=1)
            side = -1 if row.tokens > 3000 or row.config in _LABELS_ON_THE_LEFT else 1
            axes.annotate(
                row.config,
                (row.tokens, row.score),
                xytext=(7 * side, 0),
                textcoords="offset points",
                ha="right" if side < 0 else "left",
                va="center",
                fontsize=7,
            )
            if row.tokens > 10 * row.median_tokens:
                axes.plot([row.median_tokens, row.tokens], [row.score] * 2, ":", color=color, lw=1)
                axes.plot(row.median_tokens, row.score, marker, color=color, ms=5, mfc="none")
        for model, level in LEVELS:
            pair = table[table["config"].isin([f"{model} ({level})", f"{model} (maximal)"])]
            color = PALETTE[models.index(model) % len(PALETTE)]
            axes.plot(pair["tokens"], pair["score"], color=color, lw=0.8, alpha=0.5, zorder=0)
        axes.set_xscale("log")
        axes.set(xlim=(2.5, 14_000), ylim=(58, 102), xticks=_TICKS)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.set_xlabel("generated tokens per answer (mean; hollow: median)")
        axes.set_ylabel("mean score over eight tasks")
        axes.grid(True)


def key_against_exact(files: dict[str, bytes], table: pd.DataFrame) -> None:
    """Draw how many models are correct by the published key and by the exact product."""
    with svg_figure(files, "other_benchmark.svg", (FULL_WIDTH, 2.6)) as figure:
        figure.set_layout_engine("constrained", rect=(0.02, 0, 0.98, 1))
        axes = figure.subplots()
        rows = np.arange(len(table))
        bars = (
            (-0.2, "published", "white", "by the published key"),
            (0.2, "exact", PALETTE[0], "by the exact product"),
        )
        for shift, column, color, label in bars:
            drawn = axes.barh(
                rows + shift, table[column], 0.38, color=color, edgecolor=BLACK, lw=0.6, label=label
            )
            axes.bar_label(drawn, padding=3, fontsize=7)
        axes.set_yticks(rows, table["question"])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(0, 56), xlabel=f"correct models of {table['models'].max()}")
        axes.axvline(0, color=GRAY, lw=0.6)
        axes.legend(loc="lower right")


def page_values(
    scores: pd.DataFrame, gains: pd.DataFrame, other: pd.DataFrame, horizons: pd.DataFrame
) -> dict[str, str]:
    """Return every number of the page by its name in the template."""
    rescored, forensics = (
        read_tables(Path("results/rescored-study")),
        read_tables(Path("results/forensics")),
    )
    labels: Any = rescored["labels"].set_index("task")
    cells = rescored["scores"][rescored["scores"]["rescored"].notna()]
    exact: Any = cells[cells["metric"] == "exact_match"].set_index(["config", "task"])
    is_numeric = exact.index.get_level_values("task").map(lambda t: TASKS[t].metric == "log_smape")
    numeric = exact[is_numeric].groupby("task")[["labels", "digits"]].mean()
    pairs = rescored["pairs"]
    is_reversed = pairs["paper_scoring"] * pairs["rescored"] < 0
    is_reversed &= pairs["paper_scoring_significant"] & pairs["rescored_significant"]
    add, mean = exact.xs("addition", level="task"), exact.xs("mean", level="task")
    keys = forensics["labels"]
    keys = keys[keys["task"].isin(["mean", "std"]) & keys["config"].isin(exact.index.levels[0])]
    best = keys[keys["config"] == "GPT 5 (maximal)"]
    std: Any = forensics["deviations"].set_index("config").loc["Gemini 2.5 Pro (maximal)"]
    tokens: Any = forensics["tokens"].set_index("config").loc["Gemini 2.5 Flash (none)"]
    by_name: Any = scores.set_index("config")
    mult: Any = horizons[horizons["task"] == "multiplication"].set_index("model")
    famous: Any
    before: Any
    famous, before = other.iloc[-1], other.iloc[-2]

    def step(model: str) -> str:
        row = next(each_row(gains[gains["model"] == model]))
        return (
            f"{row.gain:+.1f} [{row.low:.1f}, {row.high:.1f}] points for {row.tokens:,.0f} tokens"
        )

    def horizon(config: str) -> str:
        row = mult.loc[config]
        return f"{row['h50']:.1f} [{row['h50_low']:.1f}, {row['h50_high']:.1f}]"

    return {
        "wrong": str(labels["wrong"].sum()),
        "wrong_mean": str(labels.loc["mean", "wrong"]),
        "wrong_std": str(labels.loc["std", "wrong"]),
        "ceiling_mean": f"{labels.loc['mean', 'ceiling_exact_match']:.1f}",
        "ceiling_std": f"{labels.loc['std', 'ceiling_exact_match']:.1f}",
        "exact_answers": f"{keys['exact_15_digits'].sum():,}",
        "label_answers": str(keys["label_15_digits"].sum()),
        "exact_short": str((keys["exact"] - keys["exact_15_digits"]).sum()),
        "label_short": str((keys["label"] - keys["label_15_digits"]).sum()),
        "key_answers": f"{keys['answers'].sum():,}",
        "best_answers": str(best["answers"].sum()),
        "best_exact": str(best["exact_15_digits"].sum()),
        "best_label": str(best["label_15_digits"].sum()),
        "gpt_mean_published": f"{mean.loc['GPT 5 (maximal)', 'published']:.1f}",
        "gpt_mean": f"{mean.loc['GPT 5 (maximal)', 'rescored']:.1f}",
        "add_published": f"{add.loc['GPT 5 (minimal)', 'published']:.1f}",
        "add_rescored": f"{add.loc['GPT 5 (minimal)', 'rescored']:.1f}",
        "add_labels": f"{add.loc['GPT 5 (minimal)', 'labels']:.1f}",
        "add_digits": f"{add.loc['GPT 5 (minimal)', 'digits']:.1f}",
        "digits_all": f"{numeric['digits'].mean():.1f}",
        "labels_all": f"{numeric['labels'].mean():.1f}",
        "configs": str(len(scores)),
        "pairs": str(len(pairs)),
        "reversed": {1: "one is"}.get(is_reversed.sum(), f"{is_reversed.sum()} are"),
        "first": f"{by_name.loc['GPT 5 (maximal)', 'score']:.1f}",
        "second": f"{by_name.loc['GPT OSS 120B (maximal)', 'score']:.1f}",
        "second_tokens": f"{by_name.loc['GPT OSS 120B (maximal)', 'tokens']:,.0f}",
        "first_tokens": f"{by_name.loc['GPT 5 (maximal)', 'tokens']:,.0f}",
        "first_cost": f"{by_name.loc['GPT 5 (maximal)', 'usd_per_1000']:.2f}",
        "second_cost": f"{by_name.loc['GPT OSS 120B (maximal)', 'usd_per_1000']:.2f}",
        "minimal_cost": f"{by_name.loc['GPT 5 (minimal)', 'usd_per_1000']:.2f}",
        "gpt_step": step("GPT 5"),
        "pro_step": step("Gemini 2.5 Pro"),
        "flash_step": step("Gemini 2.5 Flash"),
        "flash_mean_tokens": f"{tokens['mean']:,.0f}",
        "flash_median_tokens": f"{tokens['median']:.0f}",
        "std_answers": str(int(std["answers"])),
        "std_sample": str(int(std["sample"])),
        "std_population": str(int(std["population"])),
        "std_score": f"{std['log_smape']:.1f}",
        "std_either": f"{std['either_log_smape']:.1f}",
        "h50_flash": horizon("Gemini 2.5 Flash · none"),
        "h50_minimal": horizon("GPT 5 · minimal"),
        "h50_pro": horizon("Gemini 2.5 Pro · maximal"),
        "other_models": str(famous["models"]),
        "other_published": str(famous["published"]),
        "other_exact": str(famous["exact"]),
        "other_before": str(before["exact"]),
        "other_question": famous["question"],
        "other_product": str(famous["product"]),
        "other_key": str(famous["published_answer"]),
        "before_question": before["question"],
        **label_errors(),
        **exact_values(read_runs(MULTITASK)),
    }


def label_errors() -> dict[str, str]:
    """Return how far wrong labels are from the exact values, relative to those."""
    exact = {
        item["id"]: item["answer"]
        for task in LABELED
        for item in map(json.loads, (PAPER / f"{task}.jsonl").open(encoding="utf-8"))
    }
    errors = []
    for line in (PAPER / "published_labels.jsonl").open(encoding="utf-8"):
        label = json.loads(line)
        if not label["correct"]:
            value = Fraction(exact[label["item_id"]])
            error = abs(Fraction(label["answer"]) - value)
            errors.append(float(error / abs(value)) if value else math.inf)
    gross = sum(error > 1e-3 for error in errors)
    return {
        "wrong_digits": str(math.floor(-math.log10(median(errors)))),
        "wrong_gross": str(gross),
    }


def render(responses: Path | None = None) -> dict[str, bytes]:
    """Return the content of the page, its figures and its tables, by path.

    responses: of the other benchmark; None: the committed table of them is used.
    """
    other = (
        read_tables(RESULTS)["other_benchmark"] if responses is None else other_benchmark(responses)
    )
    items = item_scores()
    scores = score_and_tokens(items)
    gains = steps(items, scores)
    figures: dict[str, bytes] = {}
    score_against_tokens(figures, scores)
    key_against_exact(figures, other)
    tables = to_csv({"scores": scores, "steps": gains, "other_benchmark": other})
    horizons = read_tables(Path("results/horizon-study"))["horizons"]
    values = page_values(scores, gains, other, horizons)
    return {
        PAGE: fill(Path(__file__).with_name("page.md"), values),
        "results/findings/numbers.json": (json.dumps(values, indent=1) + "\n").encode(),
        **{f"docs/findings/{name}": data for name, data in figures.items()},
        **{f"results/findings/{name}": data for name, data in tables.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.findings", description=__doc__)
    parser.add_argument("responses", type=Path, nargs="?", help="the other benchmark's responses")
    write_files(Path(), render(parser.parse_args(arguments).responses))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
