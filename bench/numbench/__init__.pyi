"""The public API."""

# ruff: noqa: I001 - a module is named once
from numbench._version import __version__ as __version__
from numbench.api import (
    arun as arun,
    audit as audit,
    compare as compare,
    export as export,
    generate as generate,
    import_logs as import_logs,
    load_dataset as load_dataset,
    load_horizons as load_horizons,
    load_scores as load_scores,
    measure_horizons as measure_horizons,
    merge as merge,
    plan as plan,
    report as report,
    run as run,
    run_memory_test as run_memory_test,
    score as score,
    show as show,
    verify as verify,
    write_leaderboard as write_leaderboard,
)
from numbench.dataset.store import Dataset as Dataset
from numbench.errors import BadInput as BadInput, NumbenchError as NumbenchError
from numbench.horizon.estimate import TaskHorizon as TaskHorizon
from numbench.records import (
    Completion as Completion,
    Difficulty as Difficulty,
    Failure as Failure,
    Item as Item,
    Manifest as Manifest,
    Response as Response,
    RunInfo as RunInfo,
    Score as Score,
    Usage as Usage,
)
from numbench.runner.active_run import (
    CostLimitReached as CostLimitReached,
    RunInterrupted as RunInterrupted,
    TimeLimitReached as TimeLimitReached,
)
from numbench.runner.planning import Plan as Plan
from numbench.runner.progress import RunReport as RunReport
from numbench.scoring import ScoredRun as ScoredRun
from numbench.tasks import (
    PAPER_TASKS as PAPER_TASKS,
    TASKS as TASKS,
    Task as Task,
    TaskPrompts as TaskPrompts,
)
