"""The command that measures horizons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    Provider,
    Quantization,
    Reasoning,
    ReasoningTokens,
    Rpm,
    Seed,
    Stream,
    Structured,
    Temperature,
    TimeLimit,
    Timeout,
    Tpm,
    console,
    print_to_stderr,
    request_arguments,
    selected_tasks,
)
from numbench.cli.run import reasoning_level
from numbench.cli.run_reports import print_run_report, run_counts

if TYPE_CHECKING:
    from numbench.runner.preparation import RunArguments
    from numbench.runner.spec import RunSpec


def horizon(
    model: Annotated[
        str, typer.Option(help="A name from `numbench models`, or a route like openai/NAME.")
    ],
    reasoning: Reasoning = None,
    reasoning_tokens: ReasoningTokens = None,
    catalogue: Catalogue = None,
    tasks: Annotated[
        str,
        typer.Option(help="Scaled tasks, separated by commas, or all twelve.", metavar="A,B|all"),
    ] = "all",
    precision: Annotated[
        float,
        typer.Option(
            metavar="DOUBLINGS",
            help="Stop when the standard deviation of log2 h50 is at most this; 0.15 means that "
            "the 95 % interval is about 20 % wide on either side.",
        ),
    ] = 0.15,
    max_items: Annotated[
        int, typer.Option(metavar="N", help="Maximum number of items per task.")
    ] = 400,
    max_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest size to ask, 8 or more. [default: 4096]"),
    ] = None,
    question_seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed of the questions.")
    ] = 1,
    samples: Annotated[
        int,
        typer.Option(
            metavar="K", help="Answers per item; it counts with the share of the right ones."
        ),
    ] = 1,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    temperature: Temperature = None,
    structured: Structured = None,
    param: Params = [],  # noqa: B006 - typer copies it
    header: Headers = [],  # noqa: B006
    provider: Provider = "",
    quantization: Quantization = "",
    allow_altered_messages: AllowAlteredMessages = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Run folder. [default: results/MODEL_LEVEL_horizon]"),
    ] = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    allow_http: AllowHttp = False,
    stream: Stream = None,
    api: ApiFormat = ApiName.chat,
    timeout: Timeout = "30m",  # type: ignore[assignment]
    time_limit: TimeLimit = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            help="Stop before the run folder has cost more than this: best effort, certain only "
            "with --max-tokens and a price. [default: no limit]",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Measure up to which size of problem a model is right.

    \b
    Examples:
      numbench horizon --model gpt-5 --reasoning minimal --dry-run   cost estimate
      numbench horizon --model gpt-5 --reasoning minimal --max-cost 5
      numbench horizon --model openai/NAME --tasks long_multiplication,copy
      numbench horizon --model gpt-5 --reasoning high --precision 0.3
      numbench horizon --model baseline/float64            no API key needed
      numbench report results/*_horizon                    compare levels

    A scaled task has questions of any size: of 1 to 4,096 digits, elements or operations. An
    answer is correct if every digit is. The horizon h50 is the size at which 50% of the answers
    are correct, h90 at which 90% are; where guesses can be correct, halfway and nine tenths of the
    way from chance to 100%: 75% and 95% for long_comparison, where chance is 50%. `copy` only
    repeats a number: a horizon near that of `copy` is one of reading and writing digits, not of
    arithmetic.

    Sizes count digits (long_addition, long_subtraction, long_multiplication, long_division,
    long_comparison, copy), elements of six digits (long_sorting, long_max, long_sum, long_mean)
    or operations (chain, nested).

    Every task is asked in rounds. The sizes of a round are those that tell the most about h50 per
    token, given the answers before. A task is complete when its h50 is precise enough
    (--precision), after --max-items, or when the model passes the largest size or fails the
    smallest. A size whose answer cannot fit the token limit is not asked.

    Writes one run folder (--out), with rounds.jsonl (the items of each round) beside the files of
    numbench run. The same command again resumes the measurement and never repeats an answered
    item. A smaller --precision, a larger --max-items or more --tasks continue it.
    """
    from numbench.runner import RunInterrupted
    from numbench.runner.measurement_plan import measurement_table, plan_measurement
    from numbench.runner.measurement_spec import MeasurementSpec
    from numbench.runner.preparation import RunArguments
    from numbench.runner.spec import RunSpec

    spec = RunSpec(
        model=model,
        reasoning=reasoning_level(reasoning, reasoning_tokens),
        tasks=selected_tasks(tasks),
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
        measurement=MeasurementSpec(precision, max_items, max_size, question_seed),
    )
    arguments = RunArguments(
        concurrency=concurrency,
        timeout=timeout,
        time_limit=time_limit,
        max_cost=max_cost,
        rpm=rpm,
        tpm=tpm,
    )
    if dry_run:
        console().print(measurement_table(plan_measurement(spec, arguments), max_cost))
        return
    try:
        _measure(spec, arguments)
    except RunInterrupted as interruption:
        counts = run_counts(interruption.report)
        print_to_stderr(f"{counts}; run the same command again to continue")
        raise typer.Exit(130) from None


def _measure(spec: RunSpec, arguments: RunArguments) -> None:
    from numbench.reporting.horizon_console import horizon_table
    from numbench.reporting.horizon_files import read_horizon_run
    from numbench.runner import run
    from numbench.scoring import is_correct

    report = run(
        spec,
        concurrency=arguments.concurrency,
        timeout=arguments.timeout,
        time_limit=arguments.time_limit,
        max_cost=arguments.max_cost,
        rpm=arguments.rpm,
        tpm=arguments.tpm,
        judge=is_correct,
    )
    print_run_report(report, can_retry_errors=False)
    console().print(horizon_table([read_horizon_run(report.path)]))
    for note in _size_notes(report.path):
        print(note)
    print(f"next: numbench report {report.path}")


def _size_notes(folder: Path) -> list[str]:
    """Return which sizes could not be asked."""
    from numbench.journal import read_info
    from numbench.tasks import TASKS

    info, above = read_info(folder).horizon, dict[int, list[str]]()
    for name, largest in (info.largest if info else {}).items():
        task = TASKS[name]
        if task.sizes is not None and largest < task.sizes.maximum:
            above.setdefault(largest, []).append(task.display)
    return [
        f"not asked, because of --max-size or the token limit: sizes above {largest:,} of "
        f"{', '.join(names)}"
        for largest, names in sorted(above.items())
    ]
