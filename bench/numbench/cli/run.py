"""The command that runs models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from numbench.cli.certificate import check_certificate, run_certificate
from numbench.cli.options import (
    AllowAlteredMessages,
    AllowHttp,
    ApiFormat,
    ApiKeyEnv,
    ApiName,
    BaseUrl,
    Catalogue,
    Concurrency,
    DryRun,
    Headers,
    MaxTokens,
    Params,
    Prompts,
    Provider,
    Quantization,
    ReasoningLevels,
    ReasoningTokenCounts,
    Rpm,
    Seed,
    Stream,
    Structured,
    Tasks,
    Temperature,
    TimeLimit,
    Timeout,
    Tpm,
    TransformNames,
    console,
    listed_values,
    print_to_stderr,
    request_arguments,
    selected_tasks,
)
from numbench.cli.run_reports import print_run_report, run_counts
from numbench.errors import BadInput

if TYPE_CHECKING:
    from numbench.runner.spec import RunSpec


PAPER_SUITE = "paper"
"""The suite that is no file."""


class RunOptions(NamedTuple):
    """The arguments that `run` and `run_suite` share."""

    concurrency: int | None
    retry: tuple[str, ...]
    timeout: float
    time_limit: float | None
    max_cost: float | None
    rpm: int | None
    tpm: int | None
    cache: bool


def run(
    model: Annotated[
        str | None,
        typer.Option(help="A name from `numbench models`, or a route like openai/NAME."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="paper|FILE",
            help="Run the paper's 13 configurations, or those of a TOML file; one per provider at "
            "a time.",
        ),
    ] = None,
    reasoning: ReasoningLevels = None,
    reasoning_tokens: ReasoningTokenCounts = None,
    prompts: Prompts = "paper",
    transform: TransformNames = "none",
    catalogue: Catalogue = None,
    dataset: Annotated[str, typer.Option(help="Name or folder of a dataset.")] = "v1",
    tasks: Tasks = "all",
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the first N items per task. [default: all]"),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Only part I of N of each task's items, to share a run between machines. Join "
            "the parts with numbench merge. [default: all]",
        ),
    ] = None,
    few_shot: Annotated[
        int,
        typer.Option(
            metavar="N", help="Worked examples before each question, from the validation split."
        ),
    ] = 0,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    samples: Annotated[
        int,
        typer.Option(metavar="K", help="Ask for K answers to each item, to measure how they vary."),
    ] = 1,
    temperature: Temperature = None,
    structured: Structured = None,
    param: Params = [],  # noqa: B006 - typer copies it
    header: Headers = [],  # noqa: B006
    provider: Provider = "",
    quantization: Quantization = "",
    allow_altered_messages: AllowAlteredMessages = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Run folder; for several runs, the parent of their folders; with --certificate, "
            "the folder of both runs. [default: results/MODEL_LEVEL_DATASET]",
        ),
    ] = None,
    certificate: Annotated[
        bool,
        typer.Option(
            "--certificate",
            help="Test whether the model knows the dataset: also ask fresh items of the same "
            "difficulty, by a rule that is registered first.",
        ),
    ] = False,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="With --certificate: difference that the verdict `equivalent` excludes. "
            "[default: 3]",
        ),
    ] = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    allow_http: AllowHttp = False,
    stream: Stream = None,
    api: ApiFormat = ApiName.chat,
    background: Annotated[
        bool,
        typer.Option(
            "--background",
            help="Let OpenAI generate answers in the background, so that none is lost with a "
            "connection or this process; it stores them. Needs --api responses.",
        ),
    ] = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Use the provider's batch API: half the price, answers within 24 hours.",
        ),
    ] = False,
    timeout: Timeout = "30m",  # type: ignore[assignment]
    time_limit: TimeLimit = None,
    retry: Annotated[
        str,
        typer.Option(
            metavar="KIND,…",
            help="Request again what is empty, truncated (--max-tokens may differ), refused, or a "
            "permanent error. [default: nothing]",
        ),
    ] = "",
    retry_errors: Annotated[bool, typer.Option("--retry-errors", hidden=True)] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Stop before the run folder (with --shard: of this shard) has cost more than "
            "this: best effort, certain only with --max-tokens and a price. [default: no limit]",
            metavar="USD",
        ),
    ] = None,
    cache: Annotated[
        bool,
        typer.Option(
            "--cache",
            help="Reuse answers to equal requests of other runs, and keep those of this run. "
            "NUMBENCH_CACHE: its file.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Run a model on a dataset and store every response. Resumes an interrupted run.

    \b
    Examples:
      numbench run --model gpt-5 --reasoning minimal --limit 5   a first test
      numbench run --model gpt-5 --reasoning high --dry-run      cost estimate
      numbench run --model gpt-5 --reasoning high --batch        half the price
      numbench run --model openai/NAME --samples 5 --temperature 0.7
      numbench run --model openai/NAME --base-url http://127.0.0.1:8000/v1
      numbench run --model gpt-5 --reasoning high --shard 2/8   machine 2 of 8
      numbench run --model gemini-2.5-pro --reasoning-tokens 4096
      numbench run --model gpt-5 --reasoning minimal,low,medium
      numbench run --model gpt-5 --reasoning low --prompts paper,steps,paraphrases
      numbench run --model gpt-5 --reasoning low --transform none,grouping,swap
      numbench run --model gpt-5 --reasoning low --certificate --dry-run
      numbench run --suite paper --max-cost 500 --time-limit 8h
      numbench run --suite my-suite.toml --dry-run

    Lists of levels, prompt sets and transformations give one run per combination, in a folder of
    its own, with shared limits.
    Writes one run folder (--out): run.json (settings), requests.jsonl (one request per task),
    responses.jsonl (every response) and, with --batch, jobs.jsonl. The same command again resumes
    the run and never repeats an answered item; with a larger --limit or --samples it adds the
    missing ones.
    Ctrl-C stops sending requests and waits up to 20 seconds for those in flight; a second Ctrl-C
    exits at once. API keys are read from the environment or from ./.env.
    """
    from numbench.runner import RunInterrupted
    from numbench.runner.spec import RunSpec

    spec = RunSpec(
        model=model or "",
        dataset=dataset,
        tasks=selected_tasks(tasks),
        limit=limit,
        few_shot=few_shot,
        max_tokens=max_tokens,
        seed=seed,
        base_url=base_url,
        api=api.value,
        out=out,
        samples=samples,
        temperature=temperature,
        api_key_env=api_key_env,
        allow_http=allow_http,
        structured=structured,
        allow_altered_messages=allow_altered_messages,
        **request_arguments(param, header, provider, quantization),
        stream=stream,
        shard=shard,
        background=background,
    )
    kinds = tuple(kind.strip() for kind in retry.split(",") if kind.strip())
    kinds += ("error",) if retry_errors else ()
    options = RunOptions(concurrency, kinds, timeout, time_limit, max_cost, rpm, tpm, cache)
    levels = _reasoning_levels(reasoning, reasoning_tokens)
    _check_model_or_suite(spec, suite, batch, has_levels=levels != (None,))
    specs = _variants(spec, levels, prompts, transform)
    check_certificate(certificate, margin, batch, is_single=suite is None and len(specs) == 1)
    try:
        if certificate:
            run_certificate(specs[0], margin, options, dry_run)
        elif suite is not None or len(specs) > 1:
            _run_several(specs, suite, options, batch, dry_run)
        elif dry_run:
            _show_plan(specs[0], options, batch)
        else:
            _run_model(specs[0], options, batch)
    except RunInterrupted as interruption:
        counts = run_counts(interruption.report)
        print_to_stderr(f"{counts}; run the same command again to continue")
        raise typer.Exit(130) from None


def reasoning_level(reasoning: str | None, tokens: int | None) -> str | None:
    """Return the level of --reasoning or --reasoning-tokens. Raises BadInput for both."""
    from numbench.models.catalogue import reasoning_tokens_level

    if tokens is None:
        return reasoning
    if reasoning is not None:
        raise BadInput("give --reasoning or --reasoning-tokens, not both")
    if not 0 <= tokens < 10**9:
        raise BadInput(f"--reasoning-tokens {tokens}: give a number of tokens, 0 or more")
    return reasoning_tokens_level(tokens)


def _reasoning_levels(reasoning: str | None, tokens: str | None) -> tuple[str | None, ...]:
    """Return the levels of --reasoning or --reasoning-tokens, which may be lists."""
    if tokens is None:
        return (None,) if reasoning is None else listed_values("--reasoning", reasoning)
    levels = []
    for count in listed_values("--reasoning-tokens", tokens):
        if not re.fullmatch("-?[0-9]{1,12}", count):
            raise BadInput(f"--reasoning-tokens {count}: give a number of tokens, 0 or more")
        levels.append(reasoning_level(reasoning, int(count)))
    return tuple(levels)


def _variants(
    spec: RunSpec, levels: Sequence[str | None], prompts: str, transforms: str
) -> list[RunSpec]:
    """Return a specification for each combination of levels, prompt sets and transformations."""
    from numbench.tasks.prompts import expand_prompt_names

    names = expand_prompt_names(listed_values("--prompts", prompts))
    return [
        replace(spec, reasoning=level, prompts=name, transform=transform)
        for level, name, transform in product(
            levels, names, listed_values("--transform", transforms)
        )
    ]


def _check_model_or_suite(spec: RunSpec, suite: str | None, batch: bool, has_levels: bool) -> None:
    if suite is None and not spec.model:
        raise BadInput("give --model NAME or --suite paper (see numbench run --help)")
    if suite is None:
        return
    if spec.model or has_levels:
        raise BadInput(
            "--suite sets models and levels: omit --model, --reasoning and --reasoning-tokens"
        )
    if batch or spec.background or spec.api != "chat":
        raise BadInput(
            "--batch, --background and --api need a single --model: omit them with --suite"
        )
    if spec.params or spec.headers or spec.providers or spec.quantizations:
        raise BadInput(
            "--param, --header, --provider and --quantization need a single --model: omit them "
            "with --suite"
        )
    if spec.samples > 1 or spec.temperature is not None:
        raise BadInput("--samples and --temperature need a single --model: omit them with --suite")


def _run_model(spec: RunSpec, options: RunOptions, batch: bool) -> None:
    from numbench.runner import run as run_model
    from numbench.scoring import is_correct

    report = run_model(spec, **options._asdict(), batch=batch, judge=is_correct)
    print_run_report(report)
    print(f"next: numbench report {report.path}")


def _run_several(
    specs: Sequence[RunSpec], suite: str | None, options: RunOptions, batch: bool, dry_run: bool
) -> None:
    """Run a suite with each of `specs`, or without a suite `specs` themselves."""
    from numbench.runner.plan_table import suite_table
    from numbench.runner.suite import plan_suite, plan_variants, run_suite
    from numbench.scoring import is_correct

    if batch:
        raise BadInput(f"--batch is for a single run, not {len(specs)}: name one value per option")
    if suite is None:
        members = plan_variants(specs, **options._asdict())
    else:
        file = None if suite == PAPER_SUITE else Path(suite)
        members = plan_suite(specs, file=file, **options._asdict())
    console().print(suite_table(members, options.max_cost))
    if not dry_run:
        run_suite(
            members,
            **options._asdict(),
            judge=is_correct,
            on_done=print_run_report,
            on_failed=print_to_stderr,
        )
        print(f"next: numbench report {specs[0].out or 'results'}")


def _show_plan(spec: RunSpec, options: RunOptions, batch: bool) -> None:
    from numbench.runner.plan_table import plan_table
    from numbench.runner.planning import plan

    planned = plan(spec, batch=batch, **options._asdict())
    console().print(plan_table(planned, options.max_cost))
