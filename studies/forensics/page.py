"""Write the page of the study from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from numbench.forensics.calculator import FLAGGED_FROM
from numbench.tasks import TASKS
from studies.csv_tables import each_row
from studies.forensics.figures import answers
from studies.forensics.tables import OUTPUT_LIMIT, PLANTED_DRAWS
from studies.pages import render_page, table

LIST_TASKS = ("mean", "std")
"""The tasks with 343 of the 381 wrong labels."""

Tables = Mapping[str, pd.DataFrame]


def render(tables: Tables) -> dict[str, bytes]:
    """Return the page and its figure by file name."""
    page = render_page(Path(__file__).with_name("page.md"), values(tables))
    figure = answers(_by_config(tables["labels"]), tables["deviations"])
    return {"README.md": page.encode(), "answers.svg": figure}


def values(tables: Tables) -> dict[str, object]:
    """Return the values that the template prints."""
    wrong, labels, float64 = tables["wrong_labels"], tables["labels"], tables["float64"]
    deviations, tokens = tables["deviations"], tables["tokens"]
    models = labels[~_is_control(labels)]
    on_lists = wrong[wrong["task"].isin(LIST_TASKS)]
    tested = float64[~_is_control(float64) & (float64["decisive"] > 0)]
    return {
        "wrong": len(wrong),
        "wrong_on_lists": len(on_lists),
        "float64_labels": on_lists["is_float64"].sum(),
        "totals": models[models["task"].isin(LIST_TASKS)].select_dtypes("number").sum(),
        "others": models[~models["task"].isin(LIST_TASKS)][["exact", "label"]].sum(),
        "of": lambda config, task: models.set_index(["config", "task"]).loc[(config, task)],
        "answers": _answers_table(labels, float64),
        "verdicts": tested["verdict"].value_counts(),
        "tested": len(tested),
        "flagged_17": int(tested["flagged_17_digits"].sum()),
        "flagged_15": int(tested["flagged_15_digits"].sum()),
        "draws": PLANTED_DRAWS * len(tested),
        "flagged_from": f"{FLAGGED_FROM:,.0f}",
        "deviation": deviations.set_index("config"),
        "deviations": _deviations_table(deviations),
        "endless": _endless_table(tokens),
        "token": tokens.set_index("config").assign(
            share=lambda rows: 100 * rows["endless_tokens"] / rows["tokens"]
        ),
        "limit": f"{OUTPUT_LIMIT:,}",
        "computations": _computations_table(tables["computations"]),
    }


def _is_control(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["config"].str.startswith("*")


def _by_config(labels: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to Mean and Std by configuration, without the controls."""
    rows = labels[labels["task"].isin(LIST_TASKS) & ~_is_control(labels)]
    return rows.groupby("config", sort=False)[["answers", "exact", "label"]].sum()


def _answers_table(labels: pd.DataFrame, float64: pd.DataFrame) -> str:
    by_task = {(row.config, row.task): f"{row.exact} : {row.label}" for row in each_row(labels)}
    rows = []
    for row in each_row(float64[float64["decisive"] > 0]):
        is_flagged = row.verdict == "float64 arithmetic"
        share = "" if is_flagged else f"{row.largest_share:.1f}"
        counts = [by_task.get((row.config, task), "") for task in LIST_TASKS]
        evidence = [f"{row.decisive:,}", f"{row.float64:,}", f"{row.exact:,}"]
        rows.append([row.config, *counts, *evidence, f"10^{row.log10_bayes_factor:.0f}", share])
    header = [
        "Model (reasoning)",
        *(f"{TASKS[task].display}, exact : label" for task in LIST_TASKS),
    ]
    header += ["Answers that decide", "float64", "exact", "Bayes factor", "float64 at most, %"]
    return table(header, rows)


def _deviations_table(deviations: pd.DataFrame) -> str:
    rows = [
        [
            row.config,
            str(row.answers),
            str(row.population),
            str(row.sample),
            f"{row.log_smape:.1f}",
            f"{row.either_log_smape:.1f}",
        ]
        for row in each_row(deviations)
    ]
    header = ("Model (reasoning)", "Answers", "Within 0.1% of population", "Within 0.1% of sample")
    return table((*header, "log-sMAPE", "log-sMAPE, either accepted"), rows)


def _endless_table(tokens: pd.DataFrame) -> str:
    endless = tokens[tokens[["zeros", "nines", "other_digits"]].sum(axis=1) > 0]
    rows = [
        [
            row.config,
            str(row.zeros),
            str(row.nines),
            str(row.other_digits),
            f"{100 * row.endless_tokens / row.tokens:.1f}",
            f"{row.mean:,.0f}",
            f"{row.median:,.0f}",
        ]
        for row in each_row(endless)
    ]
    header = ("Model (reasoning)", "Zeros", "Nines", "Other digits", "Their share of tokens, %")
    return table((*header, "Mean tokens", "Median tokens"), rows)


def _computations_table(computations: pd.DataFrame) -> str:
    """Tabulate the computations that any configuration equals more often than by chance."""
    found = computations[computations["significant"]]
    rows = []
    for name, group in sorted(
        found.groupby("computation"), key=lambda item: -int(item[1]["equal"].sum())
    ):
        tasks = ", ".join(TASKS[task].display for task in TASKS if task in set(group["task"]))
        expected = group["expected"].sum()
        rows.append(
            [
                str(name),
                tasks,
                str(group["config"].nunique()),
                str(group["equal"].sum()),
                f"{expected:.1f}" if expected >= 0.1 else f"{expected:.2g}",
            ]
        )
    header = ("Computation", "Tasks", "Configurations", "Answers", "Expected by chance")
    return table(header, rows, 2)
