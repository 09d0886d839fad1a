"""Suites: several runs in one command, those of one provider after one another."""

from __future__ import annotations

import asyncio
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from numbench.core.signals import stop_on_signals
from numbench.core.texts import Sentences
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput, NumbenchError, bad_input_at
from numbench.models.catalogue import bundled_model, levels_of_model
from numbench.models.facts import catalogue_path
from numbench.runner.active_run import ActiveRun, CostLimitReached, LimitReached, RunInterrupted
from numbench.runner.budget import Budget
from numbench.runner.estimates import published_configurations
from numbench.runner.execution import check_retirement, open_run, run_to_end
from numbench.runner.options import option_name, options_of
from numbench.runner.planning import Plan, missing_keys, plan
from numbench.runner.prepare import describe, folder_name
from numbench.runner.prepared_run import PreparedRun
from numbench.runner.progress import RunReport, ScoreCallback
from numbench.runner.progress_display import show_progress
from numbench.runner.retrying import DEFAULT_POLICY, RetryPolicy
from numbench.runner.spec import RunSpec
from numbench.runner.throttle import RequestPacer
from numbench.tasks.prompts import expand_prompt_names

_text = Sentences(__file__)

PAPER_SUITE = "paper"
"""The name of the built-in suite."""

ALL_LEVELS = "all"
"""The word for every level that a model has."""

_OF_SUITE = ("out", "max_cost", "time_limit")
"""Options of the whole command, which one of its runs cannot have."""

_IN_FOLDER_NAME = frozenset(
    ("model", "reasoning", "dataset", "prompts", "tools", "transform", "few_shot", "shard")
)


def is_sweep(options: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether options make several runs: by several values, or one that stands for them."""
    names = [str(name) for name in options.get("prompts", ())]
    return (
        any(len(values) > 1 for values in options.values())
        or len(expand_prompt_names(names)) > len(names)
        or ALL_LEVELS in options.get("reasoning", ())
    )


def expand(
    options: Mapping[str, Sequence[Any]], common: Mapping[str, Any], name: str = ""
) -> Iterator[RunSpec]:
    """Yield a run for each combination of the values of `options`, in a folder of its own.

    common: the other options; their `out`, by default `results`, is the parent of the folders. To
    the name of a folder are added the values of options with several that it does not have, and
    `name`. Raises BadInput for a wrong value.
    """
    parent = Path(common.get("out") or "results")
    several = [key for key, values in options.items() if len(values) > 1]
    options = dict(options)
    if "prompts" in options:
        options["prompts"] = expand_prompt_names([str(each) for each in options["prompts"]])
    for values in product(*options.values()):
        given = {**common, **dict(zip(options, values, strict=True))}
        levels: Sequence[str | None] = (given.get("reasoning"),)
        if levels == (ALL_LEVELS,):
            levels = tuple(levels_of_model(given["model"])) or (None,)
        for level in levels:
            spec = RunSpec(**given | {"reasoning": level})
            dataset = open_dataset(spec.dataset).name
            folder = folder_name(spec, describe(spec).level, dataset)
            for key in several:
                if key not in _IN_FOLDER_NAME:
                    folder += "_" + re.sub(r"[^\w.-]+", "-", f"{given[key]}-{key}")
            yield replace(spec, out=parent / (f"{folder}_{name}" if name else folder))


def paper_suite(
    options: Mapping[str, Sequence[Any]], common: Mapping[str, Any]
) -> Iterator[RunSpec]:
    """Yield the paper's 13 configurations in its order, with other options as in `expand`."""
    for model, level in published_configurations():
        if bundled_model(model) is None:
            raise BadInput(_text("replaced", catalogue=catalogue_path(), model=model))
        yield from expand({"model": [model], "reasoning": [level], **options}, common)


def suite_file(
    path: Path, several: Mapping[str, Sequence[Any]], common: Mapping[str, Any]
) -> list[RunSpec]:
    """Return the runs of a suite file, with other options as in `expand` for what it does not set.

    Each `[[matrix]]` has options by the names of `RunSpec`, with a value or a list of values, and
    makes a run for each combination. Raises BadInput, naming the file, if it is malformed.
    """
    try:
        with bad_input_at(path, ValueError):
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(_text("unreadable", path=path, reason=error.strerror)) from error
    matrices = content.pop("matrix", None)
    is_list = isinstance(matrices, list) and all(isinstance(each, dict) for each in matrices)
    if content or not matrices or not is_list:
        raise BadInput(_text("no_matrix", path=path))
    specs: list[RunSpec] = []
    for number, matrix in enumerate(matrices):
        try:
            name = str(matrix.pop("name", ""))
            if not re.fullmatch(r"[\w.-]*", name):
                raise BadInput(f"name {name!r}: use letters, digits, '.', '_' and '-'")
            options = {**several, **{key: _values(key, value) for key, value in matrix.items()}}
            if "model" not in options:
                raise BadInput("model is missing: add a name, or a list of names")
            rest = {key: value for key, value in common.items() if key not in options}
            specs += expand(options, rest, name)
            _check_folders(specs)
        except BadInput as error:
            raise BadInput(f"{path}, matrix[{number}]: {error}") from error
    return specs


def _values(key: str, value: object) -> list[Any]:
    """Return the values of an option in a suite file, where a list gives several."""
    options = {each.name: each for each in options_of(RunSpec) if each.name not in _OF_SUITE}
    if key in _OF_SUITE:
        raise BadInput(f"{key} is for the whole suite: give {option_name(key)}")
    if key not in options:
        raise BadInput(f"unknown option {key!r}: use {', '.join(options)} or name")
    try:
        return [options[key].convert(value)]
    except BadInput:
        if not value or not isinstance(value, list):
            raise
        return [options[key].convert(each) for each in value]


def _check_folders(specs: Sequence[RunSpec]) -> None:
    """Raise BadInput if two runs would have the same folder."""
    for folder, count in Counter(spec.folder for spec in specs).items():
        if count > 1:
            raise BadInput(f"two runs share the folder {folder}: remove one of them")


def plan_suite(specs: Sequence[RunSpec], is_dry: bool = False) -> tuple[Plan, ...]:
    """Return the plans of the runs of a suite; --max-cost and --time-limit are for all of them.

    Needs no API key and writes nothing. Raises BadInput if `run_suite` would, except for a missing
    key.
    """
    _check_folders(specs)
    plans = []
    for spec in specs:
        try:
            plans.append(plan(spec, is_dry))
        except BadInput as error:
            if len(specs) == 1:
                raise
            title = f"{spec.model} {spec.reasoning or ''}".rstrip()
            raise BadInput(f"{title}: {error}") from error
    return tuple(plans)


def run_suite(
    plans: Sequence[Plan],
    judge: ScoreCallback | None = None,
    on_done: Callable[[RunReport], None] = lambda report: None,
    on_failed: Callable[[str], None] = lambda message: None,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> tuple[RunReport, ...]:
    """Run the plans with open questions and return their reports, in the order of `plans`.

    The runs of one provider follow one another; those of different providers, and batch jobs, run
    concurrently. A run that fails ends none of the others, nor does one that the cost limit leaves
    with open questions: others may be cheaper. The limits of cost and time are for all
    run folders together, `rpm` for those of each provider. on_done, on_failed: called after each
    run, with its report or why it failed; what they cannot print is not printed.

    Raises BadInput before any request if an API key is missing, a model is retired, or a limit
    cannot be enforced. At
    the end, raises CostLimitReached, TimeLimitReached or RunInterrupted if one ended the suite,
    NumbenchError if a run failed.
    """
    pending = [each for each in plans if each.is_open]
    if missing := missing_keys(pending):
        raise BadInput(_text("no_keys", keys=", ".join(missing)))
    for each in pending:
        check_retirement(each.prepared)
    budget = Budget(next((each.spec.max_cost for each in plans if each.spec.max_cost), None))
    for each in plans:
        budget.add(each.path, each.costs)
    suite = _Suite(pending, judge, budget, on_done, on_failed, policy)
    with stop_on_signals(suite.interrupt, suite.cancel):
        run_to_end(suite.run)
    return suite.result()


@dataclass
class _Suite:
    """One call of `run_suite`."""

    plans: Sequence[Plan]
    judge: ScoreCallback | None
    budget: Budget
    on_done: Callable[[RunReport], None]
    on_failed: Callable[[str], None]
    policy: RetryPolicy
    start: float = field(default_factory=time.monotonic)
    active: set[ActiveRun] = field(default_factory=set)
    reports: list[RunReport] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    end: RunInterrupted | NumbenchError | None = None
    is_stopped: bool = False

    async def run(self) -> None:
        """Execute the runs, one at a time for each provider."""
        groups: dict[str, list[tuple[int, Plan]]] = {}
        for number, each in enumerate(self.plans):
            provider = str(each.prepared.description.route).partition("/")[0]
            # A batch job spends its day waiting.
            key = f"batch {number}" if each.spec.batch else provider
            groups.setdefault(key, []).append((number + 1, each))
        as_lines = len(groups) > 1
        running = (self._run_group(group, as_lines) for group in groups.values())
        # An unexpected error is raised once the other runs have stored their answers.
        for error in await asyncio.gather(*running, return_exceptions=True):
            if error is not None:
                raise error

    def interrupt(self) -> None:
        """Start no further run, and end those that are executed in an orderly way."""
        self.is_stopped = True
        for active in list(self.active):
            active.interrupt()

    def cancel(self) -> None:
        """End at once."""
        for active in list(self.active):
            active.cancel()

    def result(self) -> tuple[RunReport, ...]:
        """Return the reports. Raises what ended the suite, or NumbenchError if a run failed."""
        if self.end is not None:
            raise self.end
        if self.failed:
            counts = {"failed": len(self.failed), "runs": len(self.plans)}
            raise NumbenchError(_text("failed", **counts, titles=", ".join(self.failed)))
        done = {report.path: report for report in self.reports}
        return tuple(done[each.path] for each in self.plans if each.path in done)

    async def _run_group(self, plans: Sequence[tuple[int, Plan]], as_lines: bool) -> None:
        pacers: dict[int | None, RequestPacer] = {}
        for number, each in plans:
            if self.is_stopped:
                return
            rpm = each.spec.rpm
            pacer = pacers.setdefault(rpm, RequestPacer(rpm))
            try:
                title = f"{number} of {len(self.plans)}: {each.prepared.title}"
                report = await self._run_one(each.prepared, title, as_lines, pacer)
            except RunInterrupted as error:
                self.end = error
            except LimitReached as error:
                # The limit of time is that of the whole suite; cheaper runs may fit that of costs.
                self.is_stopped |= not isinstance(error, CostLimitReached)
                error.args = (f"{each.title}: {error}",)
                self.end = self.end or error
            except (NumbenchError, OSError) as error:
                self._fail(each, error)
            else:
                self.reports.append(report)
                if report.failure:
                    self._fail(each, f"nothing was answered; last failure: {report.last_error}")
                else:
                    with suppress(OSError):
                        self.on_done(report)

    def _fail(self, planned: Plan, reason: object) -> None:
        self.failed.append(planned.title)
        with suppress(OSError):
            self.on_failed(f"{planned.title} failed: {reason}")

    async def _run_one(
        self, prepared: PreparedRun, title: str, as_lines: bool, pacer: RequestPacer
    ) -> RunReport:
        time_limit = prepared.spec.time_limit
        if time_limit is not None:
            time_limit = max(time_limit - (time.monotonic() - self.start), 0.001)
        with (
            show_progress(title, as_lines) as on_progress,
            open_run(
                prepared, self.judge, self.policy, self.budget, pacer, time_limit, on_progress
            ) as active,
        ):
            self.active.add(active)
            try:
                await active.run()
            finally:
                self.active.discard(active)
            return active.result()
