"""What a run asks, and of whom: the user's words, and what they come to."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from bench import __version__
from bench.dataset.store import Dataset, open_dataset
from bench.errors import BadInput
from bench.models import About, Api, Message, Request, Settings, describe_model
from bench.records import Item, RunInfo
from bench.runner.few_shot import Examples, examples, fingerprint, turns
from bench.runner.selection import PROMPTS, choose, default_folder
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts


@dataclass(frozen=True)
class RunSpec:
    """A run in the user's words: the same words mean the same run folder.

    reasoning: may be left out where the model has one level. tasks: None for all of the dataset.
    limit: items per task, None for all. few_shot: worked examples before each question.
    max_tokens, seed: of each answer; None leaves them to the model and the catalogue.
    base_url: another server with the model's protocol. api: the format of OpenAI's protocol.
    out: the run folder, None for `results/MODEL_LEVEL_DATASET`.
    """

    model: str
    reasoning: str | None = None
    dataset: str | Path = "v1"
    tasks: Sequence[str] | None = None
    limit: int | None = None
    few_shot: int = 0
    max_tokens: int | None = None
    seed: int | None = None
    base_url: str | None = None
    api: Api = "chat"
    out: Path | None = None

    def describe(self) -> About:
        """Whom it names. BadInput for an unknown model or level."""
        return describe_model(self.model, self.reasoning, self.base_url, self.api)


@dataclass(frozen=True)
class Resolved:
    """What a RunSpec comes to. `settings` is a template; `info` is what `run.json` will say."""

    spec: RunSpec
    about: About
    source: Dataset
    tasks: tuple[str, ...]
    settings: Settings
    shown: Examples
    folder: Path
    info: RunInfo

    @cached_property
    def asked(self) -> dict[str, list[Item]]:
        """The items of each task, in the dataset's order."""
        limit = self.spec.limit
        return {task: self.source.by_task[task][:limit] for task in self.tasks}

    @cached_property
    def task_of(self) -> dict[str, str]:
        """The task of every item of the dataset, by its id."""
        return {item.id: item.task for group in self.source.by_task.values() for item in group}

    def before(self, task: str) -> tuple[Message, ...]:
        """What comes before a question of `task`: its system prompt, then the examples."""
        system = prompts(PROMPTS).system(TASKS[task].system_prompt)
        return Message("system", system), *turns(self.shown.get(task, ()))

    def request(self, item: Item, timeout: float) -> Request:
        """The request that asks `item`; `timeout` in seconds."""
        opening, settings = self._openings[item.task]
        return Request((*opening, Message("user", item.prompt)), replace(settings, timeout=timeout))

    @cached_property
    def _openings(self) -> dict[str, tuple[tuple[Message, ...], Settings]]:
        return {
            task: (
                self.before(task),
                replace(self.settings, answer_kind=TASKS[task].answer_kind),
            )
            for task in self.tasks
        }


def resolve(spec: RunSpec, about: About) -> Resolved:
    """What `spec` comes to, with the model described by `about`. BadInput for wrong arguments."""
    for name, number in (("--limit", spec.limit), ("--max-tokens", spec.max_tokens)):
        if number is not None and number < 1:
            raise BadInput(f"{name} {number}: give 1 or more")
    settings = _settings(spec, about)
    source = open_dataset(spec.dataset)
    tasks = choose(source, spec.tasks)
    shown = examples(source, tasks, spec.few_shot)
    folder = spec.out or default_folder(spec.model, about.level, source.name, spec.few_shot)
    info = _info(spec, about, source, tasks, settings, shown, folder)
    return Resolved(spec, about, source, tasks, settings, shown, folder, info)


def _settings(spec: RunSpec, about: About) -> Settings:
    """The settings of the requests. BadInput for one that the model cannot honour."""
    given = {"--few-shot": spec.few_shot, "--max-tokens": spec.max_tokens, "--seed": spec.seed}
    chosen = [name for name, value in given.items() if value]
    if about.sdk is None and chosen:
        raise BadInput(f"{spec.model} takes no prompt: leave out {', '.join(chosen)}")
    if spec.seed is not None and spec.api == "responses":
        raise BadInput("OpenAI's Responses take no seed: leave out --seed")
    settings = about.settings
    if spec.max_tokens is not None:
        settings = replace(settings, max_tokens=spec.max_tokens)
    if spec.seed is not None:
        settings = replace(settings, seed=spec.seed)
    return settings


def _info(
    spec: RunSpec,
    about: About,
    source: Dataset,
    tasks: tuple[str, ...],
    settings: Settings,
    shown: Examples,
    folder: Path,
) -> RunInfo:
    recorded = asdict(settings) | about.identity
    for of_one_request in ("answer_kind", "timeout"):
        del recorded[of_one_request]
    if shown:
        recorded |= {"few_shot": spec.few_shot, "few_shot_sha256": fingerprint(shown)}
    versions = {"numbench": __version__, "python": platform.python_version()}
    if about.sdk is not None:
        versions[about.sdk] = version(about.sdk)
    return RunInfo(
        model=spec.model,
        display=about.display,
        reasoning=about.level,
        dataset=source.ref(folder),
        prompt=prompts(PROMPTS).ref,
        tasks=tasks,
        limit=spec.limit,
        settings=recorded,
        versions=versions,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
