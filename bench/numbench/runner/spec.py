"""What a user can say of a run: the one place where every option of a run is declared.

`numbench run` and `numbench horizon`, `numbench.run` and its like, and suite files take their
options from the annotated fields of `RunSpec` and `HorizonSpec`. A new option is one more field
with its docstring.
"""

# Annotations are read as they are, so they are not postponed.
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from numbench.errors import BadInput
from numbench.records import PAPER
from numbench.runner.options import Option, options_of
from numbench.runner.request_options import check_headers, parse_headers, parse_params
from numbench.tasks.calculator import NAME as CALCULATOR
from numbench.tasks.calculator import parse_calculator

if TYPE_CHECKING:
    from numbench.runner.progress import ProgressCallback

RetryKind = Literal["empty", "truncated", "refused", "error"]
"""What `--retry` sends again: unusable answers and permanent failures."""

MAX_SAMPLES = 1000
"""Samples per item; the votes of more could not be counted in float64."""

MAX_ITEMS = 10_000
"""Questions of one task in a measurement; their ids have numbers of at most four digits."""

SMALLEST_MAX_SIZE = 8
"""With fewer sizes, there is hardly a curve."""


def listed_values(text: str) -> tuple[str, ...]:
    """Return the values in a text, separated by commas."""
    return tuple(value.strip() for value in text.split(",") if value.strip())


def parse_tasks(text: str) -> tuple[str, ...] | None:
    """Return the names in a text, None for `all`. Raises BadInput for an unknown task."""
    from numbench.dataset.settings import parse_tasks as known_tasks

    return None if text.strip() == "all" else known_tasks(text.split(","))


def parse_tools(text: str) -> str:
    """Return the tool that a text names, which is checked. Raises BadInput for another text."""
    parse_calculator(text)
    return text.strip()


def parse_level(text: str) -> str:
    """Return the name of a reasoning level; `4096` is a budget, `4096-tokens`."""
    return f"{int(text)}-tokens" if re.fullmatch("[0-9]{1,9}", text) else text


def parse_duration(text: str) -> float:
    """Return the seconds of `90`, `90s`, `30m`, `8h` or `1h30m`. Raises BadInput otherwise."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise BadInput(f"{text!r} is not a time; give seconds, or a time like 30m, 8h or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


_DURATION = Option("Limits", "SECONDS|30m|8h", above=0, parse=parse_duration)
"""A time, which is that of each request as a setting."""


@dataclass(frozen=True)
class RunSpec:
    """A run of a model on a dataset, as the user specifies it.

    Each option also takes the text of the command line, such as "5m" for a time.
    """

    model: Annotated[str, Option("Model", "NAME")]
    """A name from `numbench models`, or a route like openai/NAME."""
    _: KW_ONLY
    reasoning: Annotated[str | None, Option("Model", "LEVEL", parse=parse_level, is_swept=True)] = (
        None
    )
    """Reasoning level, such as none, low or max, or a number of reasoning tokens; needed if a named
    model has more than one level."""
    dataset: Annotated[str | Path, Option("Questions", "NAME|FOLDER")] = PAPER
    """Name or folder of a dataset. With `paper`, the paper's questions, reports compare the run
    question by question with thirteen published configurations."""
    tasks: Annotated[Sequence[str] | None, Option("Questions", "A,B|all", parse=parse_tasks)] = None
    """Tasks or groups of tasks (paper, scaled, forms, context), separated by commas.
    [default: all]"""
    limit: Annotated[int | None, Option("Questions", "N", at_least=1)] = None
    """Only the first N questions per task. [default: all]"""
    shard: Annotated[str | None, Option("Questions", "I/N")] = None
    """Only part I of N of each task's questions, to share a run between machines. Join the parts
    with numbench merge. [default: all]"""
    prompts: Annotated[str | Path | None, Option("Questions", "SET", is_swept=True)] = None
    """Prompt set, or its folder: paper, explicit, steps, minimal, paraphrases, … [default: paper;
    calculator with --tools]"""
    tools: Annotated[
        str | None, Option("Questions", "TOOL", parse=parse_tools, is_setting=True)
    ] = None
    """Offer the model a tool: calculator, or calculator:faulty=0.1, which alters one digit in a
    tenth of its results."""
    max_turns: Annotated[int, Option("Limits", "N", at_least=1, at_most=100, is_recorded=True)] = 8
    """Maximum number of replies to a question with --tools; calls in the last one are not
    executed."""
    transform: Annotated[str | None, Option("Questions", "NAME", is_swept=True)] = None
    """Change the notation of the questions, or vary their operands: grouping, scientific, plus,
    trailing-zeros, decimal-comma, swap, negate. [default: none]"""
    few_shot: Annotated[int, Option("Questions", "N", is_recorded=True)] = 0
    """Worked examples before each question, from the validation split."""
    samples: Annotated[
        int, Option("Sampling", "K", at_least=1, at_most=MAX_SAMPLES, is_recorded=True)
    ] = 1
    """Ask for K answers to each question, to measure how they vary."""
    temperature: Annotated[float | None, Option("Sampling", "T", at_least=0, is_setting=True)] = (
        None
    )
    """Sampling temperature. [default: 0, if the model accepts one]"""
    max_tokens: Annotated[int | None, Option("Sampling", "TOKENS", at_least=1, is_setting=True)] = (
        None
    )
    """Maximum length of an answer. [default: the model's limit]"""
    seed: Annotated[int | None, Option("Sampling", "N", is_setting=True)] = None
    """Seed of the model's sampling, if the API has one; the questions do not depend on it.
    [default: the catalogue's]"""
    structured: Annotated[bool | None, Option("Server", is_setting=True)] = None
    """Send the JSON schema of the answer. [default: the catalogue's; else only to models known to
    accept it]"""
    params: Annotated[
        Mapping[str, object], Option("Server", "KEY=VALUE", parse=parse_params, is_setting=True)
    ] = field(default_factory=dict, repr=False)
    """Add a parameter to every request; dots nest keys, and the value is JSON: top_k=20 or
    a.b=true. May be repeated."""
    max_cost: Annotated[float | None, Option("Limits", "USD", above=0)] = None
    """Stop before the run folders of this command have cost more than this in total: guaranteed
    only with --max-tokens and a known price, otherwise best effort. [default: no limit]"""
    time_limit: Annotated[float | None, _DURATION] = None
    """Stop sending new requests after this time. [default: no limit]"""
    timeout: Annotated[float, _DURATION._replace(is_setting=True)] = 1800.0
    """Maximum time per request. [default: 30m]"""
    concurrency: Annotated[int | None, Option("Limits", "N", at_least=1)] = None
    """Maximum number of requests in flight. [default: 16; checkpoints 256]"""
    rpm: Annotated[int | None, Option("Limits", "N", at_least=1)] = None
    """Maximum number of requests per minute. [default: no limit]"""
    retry: Annotated[Collection[str], Option("Limits", "KIND,…", parse=listed_values)] = frozenset()
    """Ask again if the stored answer is of one of these kinds: empty, truncated (--max-tokens may
    differ), refused, error (a permanent failure). [default: none]"""
    base_url: Annotated[str | None, Option("Server", "URL")] = field(default=None, repr=False)
    """Another server with the same API, like vLLM or Ollama."""
    api_key_env: Annotated[str | None, Option("Server", "VARIABLE")] = None
    """Environment variable with the key for --base-url. The URL must then use https://, except on
    private networks."""
    headers: Annotated[Mapping[str, str], Option("Server", "NAME=VALUE", parse=parse_headers)] = (
        field(default_factory=dict, repr=False)
    )
    """Add an HTTP header to every request. Its value is not stored. May be repeated."""
    api: Annotated[Literal["chat", "responses"], Option("Server")] = "chat"
    """Which of OpenAI's APIs: Chat Completions or Responses."""
    stream: Annotated[bool | None, Option("Server", is_recorded=True)] = None
    """Stream answers, so that long ones survive networks that drop idle connections. [default: yes,
    except with --base-url]"""
    batch: Annotated[bool, Option("Server")] = False
    """Use the provider's batch API: half the price, answers within 24 hours."""
    allow_retired: Annotated[bool, Option("Model")] = False
    """Use a model past its retirement date. The provider may substitute another one."""
    out: Annotated[str | Path | None, Option("Options", "FOLDER")] = None
    """Run folder; for several runs, the parent of their folders. {date} is the day, in UTC.
    [default: results/MODEL_LEVEL_DATASET]"""
    on_progress: "ProgressCallback | None" = field(default=None, compare=False, repr=False)
    """Receives the progress; None shows it on stderr."""

    def __post_init__(self) -> None:
        """Convert every option. Raises BadInput for a value that no model can have."""
        level: object = self.reasoning
        if type(level) is int:
            object.__setattr__(self, "reasoning", str(level))
        for each in options_of(self):
            object.__setattr__(self, each.name, each.convert(getattr(self, each.name)))
        object.__setattr__(self, "retry", frozenset(self.retry))
        if self.prompts == (CALCULATOR if self.tools else PAPER):
            object.__setattr__(self, "prompts", None)
        if unknown := sorted(set(self.retry) - set(get_args(RetryKind))):
            raise BadInput(
                f"unknown --retry {', '.join(unknown)}: use {', '.join(get_args(RetryKind))}"
            )
        if self.batch and self.rpm is not None:
            raise BadInput("--rpm is for single requests: omit it with --batch")
        if self.batch and self.tools:
            raise BadInput("--tools needs single requests: omit it with --batch")
        if self.max_turns != type(self).max_turns and not self.tools:
            raise BadInput("--max-turns is for conversations with a tool: add --tools, or omit it")
        if self.batch and self.stream:
            raise BadInput("batch jobs do not stream: omit --stream or --batch")
        check_headers(self.headers)

    @property
    def prompt_set(self) -> str | Path:
        """The prompt set of the run."""
        return self.prompts or (CALCULATOR if self.tools else PAPER)

    @property
    def folder(self) -> Path | None:
        """The run folder that the user gave, None for the default."""
        return None if self.out is None else Path(self.out)


@dataclass(frozen=True)
class HorizonSpec(RunSpec):
    """A measurement of horizons, whose questions depend on the answers."""

    _: KW_ONLY
    dataset: str | Path = field(default="horizon", init=False)
    limit: int | None = field(default=None, init=False)
    shard: str | None = field(default=None, init=False)
    prompts: str | Path | None = field(default=None, init=False)
    tools: str | None = field(default=None, init=False)
    max_turns: int = field(default=8, init=False)
    transform: str | None = field(default=None, init=False)
    few_shot: int = field(default=0, init=False)
    retry: Collection[str] = field(default=frozenset(), init=False)
    batch: bool = field(default=False, init=False)
    tasks: Annotated[Sequence[str] | None, Option("Questions", "A,B|all", parse=parse_tasks)] = None
    """Scaled tasks, or the groups forms and context, separated by commas. [default: the twelve
    named above]"""
    precision: Annotated[float, Option("Questions", "DOUBLINGS", above=0)] = 0.15
    """Stop when the standard deviation of log2 h50 is at most this; 0.15 means that the 95%
    interval is about 20% wide on either side."""
    max_items: Annotated[int, Option("Questions", "N", at_least=1, at_most=MAX_ITEMS)] = 400
    """Maximum number of questions per task."""
    max_size: Annotated[int | None, Option("Questions", "N", at_least=SMALLEST_MAX_SIZE)] = None
    """Largest size to ask, 8 or more. [default: 4096]"""
    question_seed: Annotated[int, Option("Questions", "N")] = 1
    """Seed of the questions; --seed is that of the model's sampling."""
    out: Annotated[str | Path | None, Option("Options", "FOLDER")] = None
    """Run folder. [default: results/MODEL_LEVEL_horizon]"""


@dataclass(frozen=True)
class MemoryTestSpec(RunSpec):
    """A memory test: a run on a dataset, and one on fresh questions."""

    _: KW_ONLY
    dataset: Annotated[str | Path, Option("Questions", "NAME|FOLDER")] = "v1"
    """The dataset that the model may know, made by numbench generate."""
    shard: str | None = field(default=None, init=False)
    batch: bool = field(default=False, init=False)
    margin: Annotated[float, Option("Options", "POINTS", above=0, at_most=100)] = 3.0
    """Difference that the verdict `equivalent` excludes."""
    out: Annotated[str | Path | None, Option("Options", "FOLDER")] = None
    """Folder of the test. [default: results/MODEL_LEVEL_DATASET_memory-test]"""
