"""The functions of the public API, `numbench.run` and its like, with plain keyword arguments.

Each corresponds to a command of the same name and returns what the command prints.
"""

# Annotations are read as they are, so they are not postponed.
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from numbench.arguments import checked
from numbench.dataset.generate import FileProgress
from numbench.dataset.generate import generate as generate_dataset
from numbench.dataset.settings import (
    DatasetSettings,
    parse_numbers,
    parse_tasks,
    with_dataset_sizes,
)
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput, NumbenchError
from numbench.horizon.estimate import TaskHorizon
from numbench.records import ProtocolName
from numbench.runner import HorizonSpec, Plan, RunReport, RunSpec
from numbench.runner import arun as run_async
from numbench.runner import plan as plan_run
from numbench.runner import run as run_sync
from numbench.runner.options import field_docs, options_of
from numbench.runner.spec import listed_values
from numbench.runner.spec import parse_tasks as task_names
from numbench.scoring import ScoredRun, is_correct, score_run
from numbench.scoring.horizon_outcomes import read_horizons

if TYPE_CHECKING:
    import pandas as pd

    from numbench.dataset.audit import AuditResult
    from numbench.reporting.build import ReportResult
    from numbench.reporting.regression import Regression

PathLike = str | Path


@checked
def generate(
    name: str = "v1",
    *,
    tasks: Sequence[str] | str = "all",
    split: Literal["test", "val", "train"] = "test",
    size: int = 500,
    seed: int = 1,
    numbers: str = "15 digits",
    format: Literal["jsonl", "parquet"] = "jsonl",  # noqa: A002 - the name of the option
    out: PathLike | None = None,
    workers: int = 1,
    engine: Literal["local", "ray"] = "local",
    on_file: Callable[[FileProgress], None] = lambda _: None,
) -> Dataset:
    """Generate a dataset with exact answers in `out` (default: `datasets/NAME`) and return it.

    The same settings give the same bytes. `size` counts items per task. `numbers` says how large
    the numbers are: "15 digits" is the maximum of significant digits of an operand; "8 bits" means
    the integers 1 … 2^8 − 1, and "8 bits / 10^3" these divided by powers of ten up to 10^3; "size
    40" is the number of digits, elements, operations or rows of the questions of scaled tasks, and
    "size 4, 16" are several, in turns. `tasks` are names of tasks or of groups ("forms"), or
    "all" for the nine tasks of the paper, or for all tasks with such numbers. Raises BadInput for
    settings that are out of range, and if the folder contains another dataset; NumbenchError if the
    disk or a worker fails.
    """
    limits = parse_numbers(numbers)
    chosen = parse_tasks(tasks.split(",") if isinstance(tasks, str) else tasks, limits)
    settings = DatasetSettings(
        name=name,
        tasks=chosen,
        split=split,
        size=size,
        seed=seed,
        format=format,
        **with_dataset_sizes(chosen, limits)._asdict(),
    )
    folder = None if out is None else Path(out)
    return generate_dataset(settings, folder, workers, engine, on_file).dataset


@checked
def load_dataset(name: PathLike) -> Dataset:
    """Open a dataset: a released name (`v1`, `forms`, …), a name under `datasets/`, or a folder.

    `Dataset.by_task` maps each task to its items. Raises BadInput if there is no such dataset.
    """
    return open_dataset(name)


P = ParamSpec("P")
T = TypeVar("T")
SpecT = TypeVar("SpecT", bound=RunSpec)


def _takes(make: Callable[P, SpecT]) -> Callable[[Callable[[SpecT], T]], Callable[P, T]]:
    """Return a decorator that gives a function the parameters of its specification."""

    def decorate(function: Callable[[SpecT], T]) -> Callable[P, T]:
        def call(*args: P.args, **options: P.kwargs) -> T:
            return function(make(*args, **options))

        assert isinstance(make, type)
        docs = field_docs(make)
        lines = (f"{each.name}: {docs.get(each.name, '')}" for each in options_of(make))
        update_wrapper(call, function)
        update_wrapper(call, make, assigned=(), updated=())
        call.__doc__ = "\n\n".join((getdoc(function) or "", *lines))
        return call

    return decorate


@_takes(RunSpec)
def run(spec: RunSpec) -> RunReport:
    """Evaluate a model on a dataset and store every response in a run folder.

    The same call resumes an interrupted run and never repeats an answered question.
    `RunReport.path` is the run folder. Times are in seconds. `params` and `headers` are mappings,
    `tasks` and `retry` lists of names. Without `on_progress`, progress is displayed on stderr.
    Works in a notebook, where an event loop already runs; there, `await numbench.arun(...)` shares
    that loop.

    Raises BadInput for invalid arguments, NumbenchError if no question can be answered or the disk
    is full, and CostLimitReached, TimeLimitReached or RunInterrupted (`numbench.runner`) if the run
    stops early; all that was answered is kept.
    """
    return _answered(run_sync(spec, is_correct))


@_takes(RunSpec)
async def arun(spec: RunSpec) -> RunReport:
    """Run a model as `run` does, in the running event loop."""
    return _answered(await run_async(spec, is_correct))


@_takes(RunSpec)
def plan(spec: RunSpec) -> Plan:
    """Return what `run` with the same arguments would request and cost. Needs no API key.

    Raises BadInput if `run` would.
    """
    return plan_run(spec)


@_takes(HorizonSpec)
def measure_horizons(spec: HorizonSpec) -> RunReport:
    """Measure the problem sizes at which half of the answers are correct, guesses aside.

    `RunReport.path` is the run folder, which `load_horizons` reads. A task is complete when the
    standard deviation of log2 h50 is at most `precision`, after `max_items` questions, or when h50
    is outside the sizes, of which `max_size` is the largest. A question counts with the share of
    its `samples` that are correct. The same call resumes an interrupted measurement; one with
    another `precision`, `max_items` or further `tasks` continues it. Errors are those of `run`.
    """
    return _answered(run_sync(spec, is_correct))


@checked
def load_horizons(run: PathLike) -> dict[str, TaskHorizon]:
    """Return the horizon of each task of a measurement, also of one that is not complete.

    Raises BadInput if the folder contains no measurement.
    """
    return read_horizons(Path(run))


@checked
def report(
    runs: PathLike | Iterable[PathLike] | None = None,
    *,
    protocol: ProtocolName = "exact",
    references: bool = True,
    out: PathLike = "results/report",
    formats: Iterable[str] | str = ("svg",),
    on_progress: Callable[[str], None] = lambda _: None,
) -> "ReportResult":
    """Score runs and write tables, figures, `scores.parquet`, `report.json` and `report.html`.

    `runs` are run folders or folders that contain some; None means all under `results/` except for
    the demo's, unless there are no others. With `references`, runs on the dataset `paper` are
    compared with the published configurations. `formats` of the figures: svg, png, pdf; a list, or
    text like "svg,pdf". Raises BadInput for another format, or if a run cannot be read.
    """
    from numbench.reporting.build import report as write_report

    if runs is not None and not _paths(runs):
        raise BadInput("there is no run to report: name at least one run folder")
    figures = listed_values(formats) if isinstance(formats, str) else tuple(formats)
    return write_report(_paths(runs), protocol, references, Path(out), figures, on_progress)


@checked
def compare(
    old: PathLike,
    new: PathLike,
    *,
    margin: float | None = None,
    partial: bool = False,
    protocol: ProtocolName = "exact",
) -> "Regression":
    """Test whether run `new` is worse than run `old`; `Regression.failures` says where.

    A task fails if its score, or its problem size at 50%, is significantly lower (paired test with
    Holm's correction over the tasks). With `margin`, a task fails instead unless a regression of
    more than `margin` points is excluded. Tasks or items missing from `new` fail too, unless
    `partial` is true. Raises BadInput for runs that cannot be compared.
    """
    from numbench.reporting.regression import compare as compare_runs

    return compare_runs(Path(old), Path(new), protocol, margin, partial)


@checked
def score(run: PathLike, *, protocol: ProtocolName = "exact") -> ScoredRun:
    """Score a run; `ScoredRun.rows` maps each task to its items, responses and scores.

    Raises BadInput if the folder contains no run or the dataset of the run cannot be found.
    """
    return score_run(Path(run), protocol)


@checked
def load_scores(
    runs: PathLike | Iterable[PathLike] | None = None, *, protocol: ProtocolName = "exact"
) -> "pd.DataFrame":
    """Return the scores of runs as a data frame with one row per item and sample.

    The columns are those of `scores.parquet` (docs/report.md). Unknown values are missing, never
    0. `runs` as in `report`; those of a task that is not installed are left out with a warning.
    """
    from numbench.reporting.read import find_run_folders, score_runs
    from numbench.reporting.scores_file import scores_table

    scored, skipped = score_runs(find_run_folders(_paths(runs)), protocol)
    for sentence in skipped:
        warnings.warn(sentence, stacklevel=2)
    frame: pd.DataFrame = scores_table(scored).to_pandas()
    return frame


@checked
def show(
    run: PathLike,
    *,
    wrong: bool = False,
    tasks: Sequence[str] | str | None = None,
    kinds: Sequence[str] | str | None = None,
    difficulty: tuple[int, int] | None = None,
    items: Sequence[str] | str | None = None,
    limit: int | None = None,
    protocol: ProtocolName = "exact",
) -> None:
    """Print items of a run: question, exact answer, response, and the first wrong digit.

    `kinds` are the error kinds of docs/scoring.md, `difficulty` is the lowest and highest δ,
    `items` are item ids or beginnings of them, and `limit` counts items per task; lists may be text
    like "mean,std". Raises BadInput if the folder contains no run, or for an unknown task or kind.
    """
    from numbench.item_view import ItemFilter, show_items
    from numbench.reporting.regression import run_folder
    from numbench.safe_console import SafeConsole

    tasks = task_names(tasks) if isinstance(tasks, str) else tasks
    kinds, items = (
        listed_values(each) if isinstance(each, str) else each for each in (kinds, items)
    )
    item_filter = ItemFilter(tasks, wrong, kinds, difficulty, items, limit)
    console = SafeConsole()
    for text in show_items(run_folder(Path(run)), item_filter, protocol):
        console.print(text, soft_wrap=True)


@checked
def audit(source: PathLike) -> "AuditResult":
    """Check the labels of a dataset, a CSV file or a folder of CSV files; return the wrong ones.

    Raises BadInput with file, line and column for what cannot be read.
    """
    from numbench.dataset.audit import audit as audit_labels

    return audit_labels(source)


def _answered(report: RunReport) -> RunReport:
    """Return the report of a run. Raises NumbenchError if nothing was answered."""
    if report.failure:
        raise NumbenchError(report.failure)
    return report


def _paths(runs: PathLike | Iterable[PathLike] | None) -> list[Path] | None:
    if runs is None:
        return None
    return [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]
