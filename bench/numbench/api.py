"""The functions of the public API, `numbench.run` and its like, with plain keyword arguments.

Each corresponds to a command of the same name and returns what the command prints.
"""

# Annotations are read as they are, so they are not postponed; the command line reads them too, so
# that whatever is not needed for them is imported late.
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, ParamSpec, TypeVar

from numbench.core.arguments import checked
from numbench.core.jsonl import DISK_FULL
from numbench.errors import BadInput, NumbenchError
from numbench.records import ProtocolName
from numbench.runner.options import field_docs, options_of
from numbench.runner.spec import HorizonSpec, MemoryTestSpec, RunSpec, listed_values
from numbench.runner.spec import parse_tasks as task_names

if TYPE_CHECKING:
    import pandas as pd

    from numbench.dataset.audit import AuditResult
    from numbench.dataset.generate import FileProgress
    from numbench.dataset.store import Dataset
    from numbench.ecosystem.export import Exported
    from numbench.horizon.estimate import TaskHorizon
    from numbench.item_view import ShownTask
    from numbench.journal.merge import MergedRun
    from numbench.leaderboard import Leaderboard
    from numbench.memory_test.outcome import Outcome
    from numbench.reporting.build import ReportResult
    from numbench.reporting.regression import Regression
    from numbench.runner.planning import Plan
    from numbench.runner.progress import RunReport
    from numbench.scoring import ScoredRun
    from numbench.verification import Verification

PathLike = str | Path


@checked
def generate(
    name: Annotated[str, "NAME"] = "v1",
    *,
    tasks: Annotated[Sequence[str] | str, "A,B|all"] = "all",
    split: Literal["test", "val", "train"] = "test",
    size: Annotated[int, "N"] = 500,
    seed: Annotated[int, "N"] = 1,
    numbers: Annotated[str, "TEXT"] = "15 digits",
    out: Annotated[PathLike | None, "FOLDER"] = None,
    format: Literal["jsonl", "parquet"] = "jsonl",  # noqa: A002 - the name of the option
    workers: Annotated[int, "N"] = 1,
    engine: Literal["local", "ray"] = "local",
    on_file: Callable[["FileProgress"], None] = lambda _: None,
) -> "Dataset":
    """Generate a dataset with exact answers and return it. The same settings give the same bytes.

    `tasks` may be a list. `on_file` is called after each file that is written; none is if the
    dataset exists already. Raises BadInput for settings that are out of range, and if the folder
    contains another dataset; NumbenchError if the disk or a worker fails.

    name: Name of the dataset.

    tasks: Tasks or groups of tasks (paper, scaled, forms, context), separated by commas. `all` are
    the nine of the paper, or with numbers in bits or of a size all of these or of the scaled ones
    that have such questions.

    split: Split of the questions; no question is in two splits.

    size: Questions per task.

    seed: Seed of the questions; equal seeds give equal files.

    numbers: How large the numbers are: 'N digits' (significant digits per operand, 3 to 17);
    'N bits' (operands are integers from 1 to 2^N - 1, N from 2 to 24); 'N bits / 10^J' (divided by
    powers of ten up to 10^J); for tasks with sizes 'size N' or 'size N, M' (digits, elements,
    operations or rows, 1 to 4096; several sizes alternate). forms and context have sizes of their
    own, 2 to 20 digits and 4 to 128 rows.

    out: Folder to write. [default: datasets/NAME]

    format: File format.

    workers: Number of processes; the files do not depend on it.

    engine: Run the processes on this machine or on a Ray cluster.
    """
    from numbench.dataset.generate import generate as generate_dataset
    from numbench.dataset.settings import (
        DatasetSettings,
        parse_numbers,
        parse_tasks,
        with_dataset_sizes,
    )

    limits = parse_numbers(numbers)
    chosen = parse_tasks(tasks.split(",") if isinstance(tasks, str) else tasks, limits)
    sizes = with_dataset_sizes(chosen, limits)._asdict()
    settings = DatasetSettings(name, chosen, split, size, seed, format=format, **sizes)
    folder = None if out is None else Path(out)
    return generate_dataset(settings, folder, workers, engine, on_file)


@checked
def load_dataset(name: PathLike) -> "Dataset":
    """Open a dataset: a released name (`v1`, `forms`, …), a name under `datasets/`, or a folder.

    `Dataset.by_task` maps each task to its items. Raises BadInput if there is no such dataset.
    """
    from numbench.dataset.store import open_dataset

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
def run(spec: RunSpec) -> "RunReport":
    """Evaluate a model on a dataset and store every response in a run folder.

    The same call resumes an interrupted run and never repeats an answered question.
    `RunReport.path` is the run folder. Times are in seconds. `params` and `headers` are mappings,
    `tasks` and `retry` lists of names. Without `on_progress`, progress is displayed on stderr.
    Works in a notebook, where an event loop already runs; there, `await numbench.arun(...)` shares
    that loop.

    Raises BadInput for invalid arguments, NumbenchError if no question can be answered or the disk
    is full, and CostLimitReached, TimeLimitReached or RunInterrupted if the run stops early; all
    that was answered is kept.
    """
    return _answered(_run(spec))


@_takes(RunSpec)
async def arun(spec: RunSpec) -> "RunReport":
    """Run a model as `run` does, in the running event loop."""
    from numbench.runner.execution import arun as run_async
    from numbench.scoring import is_correct

    return _answered(await run_async(spec, is_correct))


@_takes(RunSpec)
def plan(spec: RunSpec) -> "Plan":
    """Return what `run` with the same arguments would request and cost. Needs no API key.

    Raises BadInput if `run` would.
    """
    from numbench.runner.planning import plan as plan_run

    return plan_run(spec)


@_takes(HorizonSpec)
def measure_horizons(spec: HorizonSpec) -> "RunReport":
    """Measure the problem sizes at which half of the answers are correct, guesses aside.

    `RunReport.path` is the run folder, which `load_horizons` reads. A task is complete when the
    standard deviation of log2 h50 is at most `precision`, after `max_items` questions, or when h50
    is outside the sizes, of which `max_size` is the largest. A question counts with the share of
    its `samples` that are correct. The same call resumes an interrupted measurement; one with
    another `precision`, `max_items` or further `tasks` continues it. Errors are those of `run`.
    """
    return _answered(_run(spec))


@checked
def load_horizons(run: PathLike) -> "dict[str, TaskHorizon]":
    """Return the horizon of each task of a measurement, also of one that is not complete.

    Raises BadInput if the folder contains no measurement.
    """
    from numbench.scoring.horizon_outcomes import read_horizons

    return read_horizons(Path(run))


@_takes(MemoryTestSpec)
def run_memory_test(spec: MemoryTestSpec) -> "Outcome":
    """Test with fresh questions whether a model has memorized a dataset; `Outcome.verdict` says it.

    The fresh questions are as difficult as those of the dataset. The same call resumes the test.
    Errors are those of `run`.
    """
    from numbench.memory_test.outcome import read_outcome
    from numbench.memory_test.runs import plan_memory_test, run_both
    from numbench.scoring import is_correct

    planned = plan_memory_test(spec)
    for each in run_both(planned, is_correct):
        _answered(each)
    return read_outcome(planned.folder)


@checked
def report(
    runs: PathLike | Iterable[PathLike] | None = None,
    *,
    protocol: ProtocolName = "exact",
    references: bool = True,
    out: Annotated[PathLike, "FOLDER"] = "results/report",
    formats: Annotated[Iterable[str] | str, "LIST"] = "svg",
    on_progress: Callable[[str], None] = lambda _: None,
) -> "ReportResult":
    """Score runs and write tables, figures, `scores.parquet`, `report.json` and `report.html`.

    Without other runs, `results/` includes the demo's. `formats` may be a list. Raises BadInput
    for another format, or if a run cannot be read.

    runs: Run folders, or folders of runs; files of numbench export --to baseline are references.
    [default: results/, without the demo's]

    protocol: exact: exact truth and a strict parser. lenient: the same, and answers in other
    formats are read too. paper: the paper's scoring.

    references: Compare runs on the dataset paper with the published models. [default: yes]

    out: Folder to write.

    formats: Formats of the figures: svg, png, pdf.
    """
    from numbench.reporting.build import report as write_report

    folders = None if runs is None else _some_paths(runs)
    figures = listed_values(formats) if isinstance(formats, str) else tuple(formats)
    return write_report(folders, protocol, references, Path(out), figures, on_progress)


@checked
def compare(
    old: PathLike,
    new: PathLike,
    *,
    margin: Annotated[float | None, "POINTS"] = None,
    partial: bool = False,
    strict: bool = False,
    on: Annotated[Sequence[str] | str, "all|A,B"] = "all",
    protocol: ProtocolName = "exact",
) -> "Regression":
    """Test whether run `new` is worse than run `old`; `Regression.failures` says where.

    The comparison fails if the mean score over the tasks is significantly lower (paired test); with
    a list of tasks as `on`, if that of one of these is, after Holm's correction over them; for
    measurements, if a problem size at 50% is. With `margin`, it fails instead unless a regression
    of more than `margin` points is excluded. Tasks or items missing from `new` fail too, unless
    `partial` is true. Raises BadInput for runs that cannot be compared.

    old: Run folder to compare with, or a file of numbench export --to baseline.

    new: Run folder of the same kind.

    margin: Fail unless a regression larger than this is excluded.

    partial: Do not fail for missing tasks or answers.

    strict: Fail also if the runs differ in anything else that shapes an answer (model, reasoning
    level, prompts, settings), or another model answered.

    on: What decides: the mean over the tasks, or these tasks.

    protocol: exact: exact truth and a strict parser. lenient: the same, and answers in other
    formats are read too. paper: the paper's scoring.
    """
    from numbench.reporting.compare import compare as compare_runs

    tasks = task_names(on) if isinstance(on, str) else tuple(on)
    tasks = None if on == "all" else tasks
    return compare_runs(Path(old), Path(new), protocol, margin, partial, tasks, strict)


@checked
def score(run: PathLike, *, protocol: ProtocolName = "exact") -> "ScoredRun":
    """Score a run; `ScoredRun.rows` maps each task to its items, responses and scores.

    Raises BadInput if the folder contains no run or the dataset of the run cannot be found.
    """
    from numbench.scoring import score_run

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
    tasks: Annotated[Sequence[str] | str | None, "A,B|all"] = "all",
    kinds: Sequence[str] | str | None = None,
    difficulty: Annotated[tuple[int, int] | None, "MIN MAX"] = None,
    items: Sequence[str] | str | None = None,
    limit: Annotated[int | None, "N"] = None,
    protocol: ProtocolName = "exact",
    on_selected: Callable[[dict[str, "ShownTask"]], object] = lambda _: None,
) -> None:
    """Print items of a run: question, exact answer, response, and the first wrong digit.

    `kinds` are the error kinds of docs/scoring.md, and `items` are item ids or beginnings of them;
    lists may be text like "mean,std". Raises BadInput if the folder contains no run, or for an
    unknown task or kind.

    run: Run folder.

    wrong: Only wrong answers.

    tasks: Tasks, separated by commas.

    difficulty: Only questions with a difficulty δ in this range.

    limit: At most N questions per task. [default: all]

    protocol: exact: exact truth and a strict parser. lenient: the same, and answers in other
    formats are read too. paper: the paper's scoring.
    """
    from numbench.core.safe_console import SafeConsole
    from numbench.item_view import ItemFilter, item_texts, select_items
    from numbench.reporting.regression import run_folder

    tasks = task_names(tasks) if isinstance(tasks, str) else tasks
    kinds, items = (
        listed_values(each) if isinstance(each, str) else each for each in (kinds, items)
    )
    item_filter = ItemFilter(tasks, wrong, kinds, difficulty, items, limit)
    console = SafeConsole()
    selected = select_items(run_folder(Path(run)), item_filter, protocol)
    for text in item_texts(selected):
        console.print(text, soft_wrap=True)
    on_selected(selected)


@checked
def audit(source: PathLike) -> "AuditResult":
    """Check the labels of a dataset, a CSV file or a folder of CSV files; return the wrong ones.

    Raises BadInput with file, line and column for what cannot be read.

    source: Name or folder of a dataset, a CSV file, or a folder of them.
    """
    from numbench.dataset.audit import audit as audit_labels

    return audit_labels(source)


@checked
def merge(
    runs: PathLike | Iterable[PathLike],
    *,
    out: Annotated[PathLike, "FOLDER"],
    on_progress: Callable[[str], None] = lambda _: None,
) -> "MergedRun":
    """Merge the shards of a run, or other runs on different questions, into one run.

    Raises BadInput if the runs differ in something that shapes an answer, or share questions.

    runs: Run folders.

    out: Run folder to write.
    """
    from numbench.journal.merge import merge_runs

    return merge_runs(_some_paths(runs), Path(out), on_progress)


@checked
def verify(
    runs: PathLike | Iterable[PathLike],
    *,
    repair: bool = False,
    complete: bool = False,
    on_progress: Callable[[str], None] = lambda _: None,
) -> "list[Verification]":
    """Check that runs are complete, intact and plausible; `Verification.is_valid` says it.

    With `repair`, only damaged lines are repaired, and nothing else is checked. Raises BadInput if
    there is no run.

    runs: Run folders, or folders of runs.

    repair: Keep every readable line, and back up the original.

    complete: Fail runs that answer less than 99% of a task of their dataset.
    """
    from numbench.verification import verify as verify_runs

    return verify_runs(_some_paths(runs), repair, complete, on_progress)


@checked
def export(
    source: PathLike | Iterable[PathLike] | None = None,
    *,
    to: Literal["inspect", "lm-eval", "huggingface", "baseline"],
    out: Annotated[PathLike, "FOLDER|FILE"],
) -> "Exported":
    """Write runs or a dataset in the format of another tool; return the files.

    Raises BadInput if `source` is not what the format is about.

    source: Run folders (inspect, baseline), or a dataset. [default: dataset v1]

    to: inspect: runs as Inspect logs. lm-eval: a dataset as lm-evaluation-harness tasks.
    huggingface: a dataset as Hugging Face dataset. baseline: the scores of a run as a file for
    numbench compare.

    out: Folder to write; of a baseline, the file.
    """
    from numbench.ecosystem.export import export as export_to

    names = [str(path) for path in _paths(source) or []]
    try:
        return export_to(names, to, Path(out))
    except OSError as error:
        if error.errno in DISK_FULL:
            raise NumbenchError(f"{out}: {error.strerror}; make room and try again") from error
        raise


@checked
def import_logs(
    paths: PathLike | Iterable[PathLike],
    *,
    dataset: Annotated[PathLike | None, "NAME|FOLDER"] = None,
    out: Annotated[PathLike, "FOLDER"] = "results/imported",
) -> "list[Path]":
    """Convert logs of Inspect to runs, and return the run folders.

    Raises BadInput before anything is written if a log cannot be imported.

    paths: Logs, or folders of logs.

    dataset: The questions of the logs. [default: the dataset that a log names]

    out: Folder to write.
    """
    from numbench.ecosystem.inspect_import import import_logs as import_from

    return import_from(_some_paths(paths), Path(out), None if dataset is None else str(dataset))


@checked
def write_leaderboard(
    runs: PathLike | Iterable[PathLike],
    *,
    published: bool = True,
    out: Annotated[PathLike, "FOLDER"] = "leaderboard",
    repository: Annotated[str | None, "URL"] = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> "Leaderboard":
    """Score runs and write a leaderboard, a static web site.

    Raises BadInput if a run cannot be read, or if `out` has files of something else.

    runs: Run folders, or folders of runs.

    published: Also show the paper's published scores, if all runs are on its questions or v1.
    [default: yes]

    out: Folder to write: new, or an earlier site.

    repository: Link to where runs are submitted.
    """
    from numbench.leaderboard import write_leaderboard as write_site

    return write_site(_some_paths(runs), Path(out), published, on_progress, repository)


def _run(spec: RunSpec) -> "RunReport":
    from numbench.runner.execution import run as run_model
    from numbench.scoring import is_correct

    return run_model(spec, is_correct)


def _answered(report: "RunReport") -> "RunReport":
    """Return the report of a run. Raises NumbenchError if nothing was answered."""
    if report.failure:
        raise NumbenchError(report.failure)
    return report


def _paths(runs: PathLike | Iterable[PathLike] | None) -> list[Path] | None:
    if runs is None:
        return None
    return [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]


def _some_paths(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Return the paths. Raises BadInput if there is none."""
    if not (known := _paths(paths)):
        raise BadInput("no folder is given: name at least one run folder")
    return known
