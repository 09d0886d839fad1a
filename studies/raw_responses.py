"""Runs of the paper's raw responses: python -m studies.raw_responses FOLDER.

Writes one run per model and reasoning level, on the dataset `paper`, with every raw response
verbatim. The files are one closed body of data, so a file of another model or with other questions
is refused or skipped.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench._version import __version__
from numbench.core.csv_files import read_csv
from numbench.dataset.store import Dataset, read_published_labels, released_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import write_run
from numbench.records import PAPER, Failure, Item, Response, RunInfo, Scalar, Usage
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set

_FILE_NAME = re.compile(
    r"(?P<task>[A-Za-z]+)_decimal_uniform_test_500_shuffle"
    r"(?:_(?P<model>.+)_re_(?P<effort>[A-Za-z]+))?\.csv"
)

_TOKEN_LIMIT = "Token limit reached"
"""The paper's text in place of a truncated response."""

_OUTPUT_LIMITS = (4096, 8000, 65535)
"""Output limits that responses of the paper reached, in tokens: Qwen3 the first two at different
providers, Gemini 2.5 the third."""

_LIMIT_TOLERANCE = 15
# The paper's script writes -1 if a reply reports no usage, as one that breaks off does.
_NO_USAGE = -1
_PUNCTUATION = re.compile(r'[\s{"\[:]+')
_COMPLETE_OBJECT = re.compile(r"\}\s*(?:```)?\s*\Z")


class _StudyModel(msgspec.Struct, frozen=True):
    """A model of the paper. level: set if the checkpoint determines the reasoning level."""

    name: str
    display: str
    level: str | None = None


class _StudyNames(msgspec.Struct, frozen=True):
    """`raw_responses.toml`."""

    tasks: dict[str, str]
    levels: dict[str, str]
    models: dict[str, _StudyModel]


class _RunFiles(NamedTuple):
    """The response files of one run, by task. vendor, effort: model and level in their names."""

    model: _StudyModel
    level: str
    vendor: str
    effort: str
    files: dict[str, Path]


def import_study(
    folder: Path,
    out: Path,
    on_message: Callable[[str], None] | None = None,
) -> list[Path]:
    """Import the paper's CSV files in `folder`; return the run folders written below `out`.

    Writes `out/<model>_<level>/`; a repeated import writes the same bytes. on_message: receives a
    line for each CSV file that is skipped, by default printed to stderr. Raises BadInput if the
    folder has no responses of the paper, or if a file cannot be read or has other questions.
    """
    runs = _find_files(folder, on_message or partial(print, file=sys.stderr))
    dataset = released_dataset(PAPER)
    labels = read_published_labels(dataset.path)
    return [_import_run(runs[key], dataset, labels, out) for key in sorted(runs)]


@cache
def _study_names() -> _StudyNames:
    return msgspec.convert(
        tomllib.loads(Path(__file__).with_suffix(".toml").read_text()), _StudyNames
    )


def _find_files(
    folder: Path, on_message: Callable[[str], None]
) -> dict[tuple[str, str], _RunFiles]:
    """Return the response files in `folder`, by model and level.

    on_message: receives a line for every CSV file that is none of the paper's. Raises BadInput if
    there are no response files, or if those of two models would be one run.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    names = _study_names()
    runs: dict[tuple[str, str], _RunFiles] = {}
    for path in sorted(folder.glob("*.csv")):
        match = _FILE_NAME.fullmatch(path.name)
        task = names.tasks.get(match["task"]) if match else None
        if match and task and match["model"] is None:
            continue  # Questions and labels without responses.
        model = names.models.get(match["model"]) if match else None
        level = names.levels.get(match["effort"]) if match else None
        if not (match and task and model and level):
            on_message(f"{path.name}: not a file of the paper's decimal test, skipped")
            continue
        run = _RunFiles(model, model.level or level, match["model"], match["effort"], {})
        known = runs.setdefault((model.name, run.level), run)
        if known[:4] != run[:4]:
            raise BadInput(
                f"{path}: {run.vendor} and {known.vendor} are both {model.name} ({run.level}); "
                "import the files of each from a folder of its own"
            )
        known.files[task] = path
    if not runs:
        raise BadInput(
            f"{folder}: none of the paper's responses here (<Task>_decimal_uniform_test_500_shuffle"
            "_<model>_re_<effort>.csv); they are in the history of its repository"
        )
    return runs


def _import_run(run: _RunFiles, dataset: Dataset, labels: dict[str, str], out: Path) -> Path:
    """Write one run folder and return its path."""
    folder = out / f"{run.model.name}_{run.level}"
    tasks = tuple(task for task in TASKS if task in run.files)
    served = run.vendor.replace("__", "/", 1)
    responses = [
        response
        for task in tasks
        for response in _responses(run.files[task], list(dataset.by_task[task]), labels, served)
    ]
    info = RunInfo(
        model=run.model.name,
        display=run.model.display,
        reasoning=run.level,
        dataset=dataset.ref(folder),
        prompt=load_prompt_set().ref(tasks),
        tasks=tasks,
        limit=None,
        settings={"served_model": served, "effort": run.effort},
        versions={"numbench": __version__},
        created="",
        source="imported",
    )
    write_run(folder, info, responses)
    return folder


def _responses(
    path: Path, items: Sequence[Item], labels: dict[str, str], served: str
) -> Iterator[Response]:
    """Yield the responses of a file.

    A response without usage and without any part of an answer is a failed request. A response
    that is not complete and has the number of tokens of an output limit is truncated.
    `extra["study_tokens"]` is the file's `tokens` column, whose unit differs between providers.

    Raises BadInput if its questions or labels are not those of the task.
    """
    rows = read_csv(path, ("text_prompt", "answer", "raw_response"))
    for number, (line, cells) in enumerate(rows, 1):
        location = f"{path}, line {line}"
        if number > len(items):
            raise BadInput(f"{location}: more rows than the {len(items)} questions of the task")
        item, text = items[number - 1], cells["raw_response"]
        known = {"text_prompt": item.prompt, "answer": labels[item.id]}
        for column, value in known.items():
            if cells[column] != value:
                raise BadInput(
                    f"{location} (row {number}): {column} is {cells[column][:60]!r}, but "
                    f"{value[:60]!r} in the dataset {PAPER}; this is another file"
                )
        extra: dict[str, Scalar] = {}
        tokens = _number(location, cells, "tokens")
        if tokens is not None:
            extra["study_tokens"] = int(tokens) if tokens.is_integer() else tokens
        usage = _usage(location, cells)
        # For requests with the paper's own provider key (BYOK), `usage.cost` is only the router's
        # fee, and the upstream cost is the price.
        own_key = cells.get("usage.is_byok", "").strip().lower() == "true"
        column = "usage.cost_details.upstream_inference_cost" if own_key else "usage.cost"
        yield Response(
            item_id=item.id,
            text=text,
            reasoning_text=cells.get("reasoning") or None,
            finish_reason="length" if _is_truncated(text, usage) else None,
            usage=usage,
            cost=_number(location, cells, column),
            served_model=served,
            error=_failure(text) if tokens == _NO_USAGE else None,
            extra=extra,
        )


def _is_truncated(text: str, usage: Usage) -> bool:
    """Return whether the output ended at a token limit.

    Gemini's counts of endless outputs end a few tokens before its limit.
    """
    if text.strip() == _TOKEN_LIMIT:
        return True
    if usage.generated is None or _COMPLETE_OBJECT.search(text[-100:]):
        return False
    return any(limit - _LIMIT_TOLERANCE <= usage.generated <= limit for limit in _OUTPUT_LIMITS)


def _failure(text: str) -> Failure | None:
    """Return the failure of a reply without usage; None if it contains part of an answer.

    `{"answer":` and every shorter beginning of the requested object contain none.
    """
    if not "answer".startswith(_PUNCTUATION.sub("", text)):
        return None
    message = "neither an answer nor usage in the reply (tokens = -1)"
    return Failure(kind="transient", message=message)


def _usage(location: str, cells: dict[str, str]) -> Usage:
    """Return the tokens of a row; values that it does not have are None.

    Gemini's rows (`usage_metadata`) count visible tokens as candidates and reasoning tokens as
    thoughts. Either is blank if there were none, which follows from the total, or from a response
    without text. OpenRouter's completion tokens include reasoning.
    """

    def count(column: str) -> int | None:
        value = _number(location, cells, f"usage.{column}")
        return int(value) if value is not None and value >= 0 else None

    visible = count("usage_metadata.candidates_token_count")
    reasoning = count("usage_metadata.thoughts_token_count")
    if visible is None and reasoning is None:
        prompt, generated = count("prompt_tokens"), count("completion_tokens")
        reasoning = count("completion_tokens_details.reasoning_tokens")
        if prompt is None and generated is None:
            return Usage()
        if generated is None or (reasoning or 0) > generated:
            reasoning = None
        if generated is not None and reasoning is not None:
            visible = generated - reasoning
    else:
        prompt = count("usage_metadata.prompt_token_count")
        total = count("usage_metadata.total_token_count")
        if visible is None and cells["raw_response"].strip() in ("", _TOKEN_LIMIT):
            visible = 0
        if prompt is not None and total is not None:
            rest = total - prompt - (visible or 0) - (reasoning or 0)
            if rest >= 0:
                visible = rest if visible is None else visible
                reasoning = rest if reasoning is None else reasoning
        generated = None if visible is None or reasoning is None else visible + reasoning
    return Usage(
        input=prompt, reasoning=reasoning, visible=visible, generated=generated, source="reported"
    )


def _number(location: str, cells: dict[str, str], column: str) -> float | None:
    """Return the finite number in a cell; None if it is blank, not finite, or has no column."""
    text = cells.get(column, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{location}, column {column}: {text[:40]!r} is not a number") from None
    return value if math.isfinite(value) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser("studies.raw_responses", description=__doc__)
    parser.add_argument("folder", type=Path, help="the paper's CSV files")
    parser.add_argument("--out", type=Path, default=Path("results/study"), help="of the runs")
    options = parser.parse_args(arguments)
    print(*import_study(options.folder, options.out), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
