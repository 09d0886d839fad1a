"""What a user can say of a run: the one place where every option of a run is declared.

`numbench run` and `numbench horizon`, `numbench.run` and its like, and suite files take their
options from the fields of `RunSpec` and `HorizonSpec`: name, type and default, with the help text
of the docstring. A new option is one more field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from numbench.errors import BadInput
from numbench.records import PAPER

if TYPE_CHECKING:
    from numbench.runner.progress import ProgressCallback

Panel = Literal["Model", "Questions", "Sampling", "Limits", "Server", "Options"]
"""The headings of the options in the help of a command."""

RetryKind = Literal["empty", "truncated", "refused", "error"]
"""What `--retry` requests again: answers that are none, and permanent failures."""

MAX_SAMPLES = 1000
"""Samples per item; the votes of more could not be counted in float64."""

SMALLEST_MAX_SIZE = 8
"""With fewer sizes, there is hardly a curve."""

_EXPLAINED = re.compile(r"^  (\w+)(?: \((.+?)\))?: (.+(?:\n    .+)*)", re.M)
"""An option in a docstring: `name (METAVAR): help`."""


class Help(NamedTuple):
    """How the help describes an option."""

    metavar: str
    text: str


def option(
    default: Any,
    panel: Panel,
    *,
    parse: Callable[[Any], object] | None = None,
    at_least: float | None = None,
    above: float | None = None,
    is_swept: bool = False,
    is_setting: bool = False,
    is_recorded: bool = False,
) -> Any:
    """Declare an option of a run as a field of a specification; `...` stands for no default.

    The help is in the docstring of the specification. parse: returns the value for the text of the
    command line, for a mapping its list of texts. at_least, above: bounds of the value. is_swept:
    whether the command line takes several values, separated by commas, each of which makes a run.
    is_setting: whether it replaces the field of `RequestSettings` of its name, and so is part of
    every request. is_recorded: whether `run.json` has it among its settings if it is not the
    default. Settings of `run.json` have to be the same when a run is resumed.
    """
    metadata = dict(locals())
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=MISSING if default is ... else default, metadata=metadata)


def split_help(documented: object) -> tuple[str, dict[str, Help]]:
    """Return the docstring of a function or class without its section "Options", and that."""
    text, _, options = (getdoc(documented) or "").partition("\nOptions:\n")
    return text, {
        name: Help(metavar, " ".join(help_text.split()))
        for name, metavar, help_text in _EXPLAINED.findall(options)
    }


def help_of(kind: type[RunSpec]) -> dict[str, Help]:
    """Return the help of all options of a specification."""
    helps: dict[str, Help] = {}
    for each in reversed(kind.__mro__):
        helps |= split_help(each)[1]
    return helps


def listed_values(text: str) -> tuple[str, ...]:
    """Return the values in a text, separated by commas."""
    return tuple(value.strip() for value in text.split(",") if value.strip())


def parse_tasks(text: str) -> tuple[str, ...] | None:
    """Return the names in a text, None for `all`. Raises BadInput for an unknown task."""
    from numbench.dataset.settings import parse_tasks as known_tasks

    return None if text.strip() == "all" else known_tasks(text.split(","))


def parse_duration(text: str) -> float:
    """Return the seconds of `90`, `90s`, `30m`, `8h` or `1h30m`. Raises BadInput otherwise."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise BadInput(f"{text!r} is not a time; give seconds, or a time like 30m, 8h or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def parse_params(texts: Iterable[str]) -> dict[str, object]:
    """Return the nested parameters of `KEY=VALUE` texts, whose keys are nested by dots.

    Values are JSON; a single word needs no quotes. Raises BadInput for a malformed text, or for
    two that contradict each other.
    """
    params: dict[str, object] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        *parents, name = key.strip().split(".")
        if not separator or not name or not all(parents):
            raise BadInput(f"--param {text}: give KEY=VALUE, for example top_k=20 or a.b=true")
        target: Any = params
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise BadInput(f"--param {key}: {parent} has a value already; give one of them")
        if name in target:
            raise BadInput(f"--param {key} is given twice; give it once")
        try:
            target[name] = msgspec.json.decode(value.strip())
        except msgspec.DecodeError:
            if not re.fullmatch(r"[A-Za-z_][\w./:@+-]*", value.strip()):
                raise BadInput(
                    f"--param {key}: {value!r} is not JSON; quote a text: {key}='\"…\"'"
                ) from None
            target[name] = value.strip()
    return params


def parse_headers(texts: Iterable[str]) -> dict[str, str]:
    """Return the headers of `NAME=VALUE` texts.

    Raises BadInput for a malformed text. The message does not contain the value.
    """
    headers: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise BadInput("--header: give NAME=VALUE")
        if name.strip().lower() in map(str.lower, headers):
            raise BadInput(f"--header {name.strip()} is given twice; give it once")
        headers[name.strip()] = value.strip()
    return headers


@dataclass(frozen=True)
class RunSpec:
    """A run of a model on a dataset, as the user specifies it.

    Options:
      model (NAME): A name from `numbench models`, or a route like openai/NAME.
      reasoning (LEVEL): Reasoning level, such as none, low or max, or a number of reasoning
        tokens; needed if a named model has more than one level.
      dataset (NAME|FOLDER): Name or folder of a dataset. With `paper`, the paper's questions,
        reports compare the run question by question with thirteen published configurations.
      tasks (A,B|all): Tasks, separated by commas. [default: all]
      limit (N): Only the first N questions per task. [default: all]
      shard (I/N): Only part I of N of each task's questions, to share a run between machines. Join
        the parts with numbench merge. [default: all]
      prompts (SET): Prompt set, or its folder: paper, explicit, steps, minimal, paraphrases, …
      transform (NAME): Ask the questions in another form: grouping, scientific, plus,
        trailing-zeros, decimal-comma, swap, negate, scale3, … [default: none]
      few_shot (N): Worked examples before each question, from the validation split.
      samples (K): Ask for K answers to each question, to measure how they vary.
      temperature (T): Sampling temperature. [default: 0, if the model accepts one]
      max_tokens (TOKENS): Maximum length of an answer. [default: the model's limit]
      seed (N): Seed of the model's sampling, if the API has one; the questions do not depend on
        it. [default: the catalogue's]
      structured: Send the JSON schema of the answer. [default: the catalogue's; else only to models
        known to accept it]
      params (KEY=VALUE): Add a parameter to every request, nested by dots, the value in JSON:
        top_k=20 or a.b=true. May be repeated.
      max_cost (USD): Stop before the run folders of this command have cost more than this in total:
        best effort, certain only with --max-tokens and a price. [default: no limit]
      time_limit (SECONDS|30m|8h): Stop sending new requests after this time. [default: none]
      timeout (SECONDS|30m|8h): Maximum time per request. [default: 30m]
      concurrency (N): Maximum number of requests in flight. [default: 16; checkpoints 256]
      rpm (N): Maximum number of requests per minute. [default: no cap]
      retry (KIND,…): Ask again where the stored answer is of such a kind: empty, truncated
        (--max-tokens may differ), refused, error (a permanent failure). [default: none]
      base_url (URL): Another server with the same API, like vLLM or Ollama.
      api_key_env (VARIABLE): Environment variable with the key for --base-url, which needs https://
        beyond private networks then.
      headers (NAME=VALUE): Add an HTTP header to every request. Its value is not stored. May be
        repeated.
      api: Which of OpenAI's APIs: Chat Completions or Responses.
      stream: Stream answers, so that long ones survive networks that drop idle connections.
        [default: yes, except with --base-url]
      batch: Use the provider's batch API: half the price, answers within 24 hours.
      out (FOLDER): Run folder; for several runs, the parent of their folders. [default:
        results/MODEL_LEVEL_DATASET]
    """

    model: str = option(..., "Model")
    _: KW_ONLY
    reasoning: str | None = option(None, "Model", is_swept=True)
    dataset: str | Path = option(PAPER, "Questions")
    tasks: Sequence[str] | None = option(None, "Questions", parse=parse_tasks)
    limit: int | None = option(None, "Questions", at_least=1)
    shard: str | None = option(None, "Questions")
    prompts: str | Path = option(PAPER, "Questions", is_swept=True)
    transform: str | None = option(None, "Questions", is_swept=True)
    few_shot: int = option(0, "Questions", is_recorded=True)
    samples: int = option(1, "Sampling", at_least=1, is_recorded=True)
    temperature: float | None = option(None, "Sampling", at_least=0, is_setting=True)
    max_tokens: int | None = option(None, "Sampling", at_least=1, is_setting=True)
    seed: int | None = option(None, "Sampling", is_setting=True)
    structured: bool | None = option(None, "Server", is_setting=True)
    params: Mapping[str, object] = option(dict, "Server", parse=parse_params, is_setting=True)
    max_cost: float | None = option(None, "Limits", above=0)
    time_limit: float | None = option(None, "Limits", parse=parse_duration, above=0)
    timeout: float = option(1800.0, "Limits", parse=parse_duration, above=0)
    concurrency: int | None = option(None, "Limits", at_least=1)
    rpm: int | None = option(None, "Limits", at_least=1)
    retry: Collection[str] = option((), "Limits", parse=listed_values)
    base_url: str | None = option(None, "Server")
    api_key_env: str | None = option(None, "Server")
    headers: Mapping[str, str] = option(dict, "Server", parse=parse_headers)
    api: Literal["chat", "responses"] = option("chat", "Server")
    stream: bool | None = option(None, "Server", is_recorded=True)
    batch: bool = option(False, "Server")
    out: str | Path | None = option(None, "Options")
    on_progress: ProgressCallback | None = field(default=None, compare=False, repr=False)
    """Receives the progress; None shows it on stderr."""

    def __post_init__(self) -> None:
        """Raise BadInput for a value that is out of range, whatever the model."""
        if self.reasoning and re.fullmatch("[0-9]{1,9}", self.reasoning):
            object.__setattr__(self, "reasoning", f"{int(self.reasoning)}-tokens")
        retry = listed_values(self.retry) if isinstance(self.retry, str) else self.retry
        object.__setattr__(self, "retry", frozenset(retry))
        if isinstance(self.tasks, str):
            object.__setattr__(self, "tasks", parse_tasks(self.tasks))
        for each in options_of(type(self)):
            _check_bounds(each, getattr(self, each.name))
        if self.samples > MAX_SAMPLES:
            raise BadInput(f"--samples {self.samples}: give at most {MAX_SAMPLES:,}")
        if unknown := sorted(set(retry) - set(get_args(RetryKind))):
            raise BadInput(
                f"unknown --retry {', '.join(unknown)}: use {', '.join(get_args(RetryKind))}"
            )
        if self.batch and self.rpm is not None:
            raise BadInput("--rpm is for single requests: omit it with --batch")
        if self.batch and self.stream:
            raise BadInput("batch jobs do not stream: omit --stream or --batch")
        check_headers(self.headers)

    @property
    def folder(self) -> Path | None:
        """The run folder that the user gave, None for the default."""
        return None if self.out is None else Path(self.out)


@dataclass(frozen=True)
class HorizonSpec(RunSpec):
    """A measurement of horizons, whose questions depend on the answers.

    Options:
      tasks (A,B|all): Scaled tasks, separated by commas. [default: all twelve]
      precision (DOUBLINGS): Stop when the standard deviation of log2 h50 is at most this; 0.15
        means that the 95% interval is about 20% wide on either side.
      max_items (N): Maximum number of questions per task.
      max_size (N): Largest size to ask, 8 or more. [default: 4096]
      question_seed (N): Seed of the questions; --seed is that of the model's sampling.
      out (FOLDER): Run folder. [default: results/MODEL_LEVEL_horizon]
    """

    _: KW_ONLY
    dataset: str | Path = field(default="horizon", init=False)
    limit: int | None = field(default=None, init=False)
    shard: str | None = field(default=None, init=False)
    prompts: str | Path = field(default=PAPER, init=False)
    transform: str | None = field(default=None, init=False)
    few_shot: int = field(default=0, init=False)
    retry: Collection[str] = field(default=(), init=False)
    batch: bool = field(default=False, init=False)
    tasks: Sequence[str] | None = option(None, "Questions", parse=parse_tasks)
    precision: float = option(0.15, "Questions", above=0)
    max_items: int = option(400, "Questions", at_least=1)
    max_size: int | None = option(None, "Questions", at_least=SMALLEST_MAX_SIZE)
    question_seed: int = option(1, "Questions")
    out: str | Path | None = option(None, "Options")


def options_of(kind: type[RunSpec]) -> Iterator[Field[Any]]:
    """Yield the fields that are options, in the order of the class."""
    return (each for each in fields(kind) if each.init and "panel" in each.metadata)


def given_options(spec: RunSpec) -> dict[str, Any]:
    """Return the options of a run that are on or have another value than the default."""
    values = {
        each.name: (getattr(spec, each.name), each.default) for each in options_of(type(spec))
    }
    return {
        name: value
        for name, (value, default) in values.items()
        if value is not None and value is not False and value not in (default, {})
    }


def option_name(name: str) -> str:
    """Return how the command line writes the option of a field, such as `--max-cost`."""
    given = {"params": "param", "headers": "header"}.get(name, name)
    return f"--{given.replace('_', '-')}"


def type_of(each: Field[Any]) -> Any:
    """Return the type of an option, with a text for a path."""
    return eval(str(each.type), {**globals(), "Path": str})


def convert_option(each: Field[Any], value: object) -> object:
    """Return the value of an option in a file, which may be written as on the command line.

    Raises BadInput or msgspec.ValidationError for a wrong value.
    """
    if isinstance(value, str) and each.metadata["parse"]:
        return each.metadata["parse"](value)
    return msgspec.convert(value, type_of(each))


def _check_bounds(each: Field[Any], value: Any) -> None:
    least, above = each.metadata["at_least"], each.metadata["above"]
    if value is None or (least is None and above is None):
        return
    if least is not None and not least <= value < math.inf:
        raise BadInput(f"{option_name(each.name)} {value:g}: give {least:g} or more")
    if above is not None and not above < value < math.inf:
        raise BadInput(f"{option_name(each.name)} {value:g}: give a number above {above:g}")


_ADVICE = {
    "maxtokens maxcompletiontokens maxoutputtokens": "use --max-tokens",
    "model": "use --model",
    "n candidatecount bestof": "use --samples",
    "seed": "use --seed",
    "responsemimetype responsejsonschema responseformat responseschema": "use --structured or "
    "--no-structured",
    "temperature": "use --temperature",
    "background contents input instructions messages prompt stream streamoptions system "
    "systeminstruction": "numbench sets this parameter; omit it",
}
"""What to do instead of some parameters, by their names in lower case without underscores."""

_OWN_HEADERS = {"accept-encoding", "anthropic-version", "connection", "content-length"} | {
    "content-type", "host", "transfer-encoding"
}  # fmt: skip
_PUBLIC_HEADERS = {"anthropic-beta", "openai-beta"}
"""Headers that change what an API does, and whose values are no secrets."""


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise BadInput for a header that cannot be sent. The message does not contain its value."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise BadInput(f"--header {name!r}: not the name of a header, such as X-Title")
        if name.lower() in _OWN_HEADERS:
            raise BadInput(f"--header {name}: numbench sets this header; omit it")
        if not (value.isascii() and value.isprintable() and value):
            raise BadInput(
                f"--header {name}: the value is empty or has a character that no header can carry"
            )


def recorded_headers(headers: Mapping[str, str]) -> list[str]:
    """Return what identifies the headers of a run: their names, and values that are no secrets.

    No hash of the others either: a short secret could be guessed from it.
    """
    return sorted(
        f"{name}={value}" if name.lower() in _PUBLIC_HEADERS else name
        for name, value in headers.items()
    )


def check_params(params: Mapping[str, object], level_request: Mapping[str, object]) -> None:
    """Raise BadInput for parameters that an option sets, or that are no JSON.

    level_request: the parameters of the reasoning level, which `params` must not contradict.
    """
    try:
        json.dumps(params, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"--param: not a JSON value: {error}") from None
    level_names = {_folded(path[-1]) for path in _paths(level_request)}
    if "reasoningeffort" in level_names:
        level_names.add("effort")
    for path in _paths(params):
        key, names = ".".join(path), list(map(_folded, path))
        if not all(path):
            raise BadInput(f"--param {key!r}: names are texts that are not empty")
        # The fields of this object are parameters like those at the top level.
        name = names[1] if names[0] == "generationconfig" and len(names) > 1 else names[0]
        if names[:2] == ["text", "format"]:
            name = "responseformat"
        for refused, advice in _ADVICE.items():
            if name in refused.split():
                raise BadInput(f"--param {key}: {advice}")
        if names[-1] in level_names:
            raise BadInput(
                f"--param {key}: --reasoning sets it; omit one of them (without --reasoning, a "
                "route has the level 'default')"
            )


def _paths(node: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, (*path, str(name)))
        else:
            yield (*path, str(name))


def _folded(name: str) -> str:
    return name.replace("_", "").lower()
