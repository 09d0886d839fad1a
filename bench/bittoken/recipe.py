"""Recipes: the settings of a training, read from a TOML file that may extend another."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bittoken.encodings import DIGITS_PER_TOKEN, ENCODINGS, find_encoding
from bittoken.network import ModelConfig, ModelShape, PositiveInt
from numbench.core.installation import read_toml
from numbench.errors import BadInput, bad_input_at
from numbench.models.base import merge_parameters
from numbench.tasks import PAPER_TASKS
from numbench.tasks.shards import check_bits

TEXT = "text"
"""The task of next-token prediction on text, in addition to the number tasks."""

HARD_TASKS = ("multiplication", "division", "exponentiation", "mean", "std")
"""The tasks that the paper trains with a curriculum."""

RECIPES = Path(__file__).parent / "recipes"


NaturalInt = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class DataPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[data]`: the training data.

    tasks: names of number tasks, and "text". curriculum: the tasks that start with easy questions.
    digits: maximum number of significant digits of an operand. bits: if set, operands are integers
    of at most this many bits instead. falling_threshold: whether the score that unlocks the next
    level decreases during training (paper); otherwise it stays at 0.9. balance: the exponent λ
    of the tasks' shares, which follow their scores. shares: fixed shares of the tasks instead.
    text, text_vocabulary: for the task "text", a folder of .parquet files and a tokenizer.json of
    GPT-2's kind.
    """

    tasks: Annotated[tuple[str, ...], Meta(min_length=1)] = tuple(PAPER_TASKS)
    curriculum: tuple[str, ...] = HARD_TASKS
    digits: Annotated[int, Meta(ge=2, le=17)] = 15
    bits: int | None = None
    falling_threshold: bool = True
    balance: Annotated[float, Meta(le=1)] = -1.0
    shares: tuple[Annotated[float, Meta(gt=0)], ...] = ()
    text: str | None = None
    text_vocabulary: str | None = None


class TrainingPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[training]`: length, batch size and intervals.

    tokens: the total budget, in tokens that enter the network. batch_tokens: tokens per step, on
    average. questions, batch_questions: budget and batch in questions; if set, they replace the
    sizes in tokens, so that encodings see equally many questions per step. micro_tokens: maximum
    tokens of a forward pass, padding included; 0: no limit. validate_every: steps between
    validations. validation_items: questions of each task per validation, also for the curriculum.
    stop_exact: the exact match of every task that ends the training when two consecutive
    validations reach it; 0 means never. save_every: steps between saves, which follow validations.
    threads: CPU threads; 0 means torch's default. data_workers: processes that prepare batches; 0:
    the training process.
    """

    tokens: PositiveInt = 10_000_000_000
    batch_tokens: PositiveInt = 192 * 1024
    questions: NaturalInt = 0
    batch_questions: NaturalInt = 0
    micro_tokens: NaturalInt = 0
    validate_every: PositiveInt = 32
    validation_items: PositiveInt = 384
    stop_exact: Share = 0.0
    save_every: PositiveInt = 1000
    seed: int = 1
    precision: Literal["bf16", "float32"] = "bf16"
    compile: bool = False
    threads: NaturalInt = 0
    data_workers: NaturalInt = 0

    @property
    def steps(self) -> int:
        """The total number of steps, if the training does not end early."""
        if self.batch_questions:
            return max(self.questions // self.batch_questions, 1)
        return max(self.tokens // self.batch_tokens, 1)


class OptimizerPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[optimizer]`: peak learning rates by parameter group.

    scale: a factor of all four rates. warmup: the share of the steps in which they rise.
    """

    muon: Rate = 0.02
    embedding: Rate = 0.03
    heads: Rate = 0.004
    scalars: Rate = 0.02
    scale: Rate = 1.0
    warmup: Annotated[float, Meta(ge=0, lt=1)] = 0.1


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a training."""

    name: str
    model: ModelShape
    data: DataPart = DataPart()
    training: TrainingPart = TrainingPart()
    optimizer: OptimizerPart = OptimizerPart()

    def config(self, vocabulary: int) -> ModelConfig:
        """Return the configuration of the network for a vocabulary of this size."""
        return ModelConfig(vocabulary=vocabulary, **msgspec.structs.asdict(self.model))

    @property
    def base(self) -> Literal[2, 10]:
        """The base in which difficulty is counted: that of the encoding."""
        encoding = find_encoding(self.model.encoding)
        return 10 if encoding is None else encoding.base

    @property
    def warmup_steps(self) -> int:
        """The number of steps of the warm-up."""
        return round(self.optimizer.warmup * self.training.steps)

    def rate_share(self, step: int) -> float:
        """Return the learning rate of a step as a share of its peak.

        It rises linearly during the warm-up, then falls to 0 along a cosine (paper).
        """
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        steps = max(self.training.steps - self.warmup_steps, 1)
        return 0.5 * (1 + math.cos(math.pi * (step - self.warmup_steps) / steps))

    def check(self) -> None:
        """Raise BadInput if settings contradict each other."""
        data, training = self.data, self.training
        _check_tasks("data.tasks", data.tasks, (*PAPER_TASKS, TEXT))
        _check_tasks("data.curriculum", data.curriculum, tuple(PAPER_TASKS))
        encodings = (*ENCODINGS, *DIGITS_PER_TOKEN)
        if self.model.encoding not in encodings:
            raise BadInput(
                f"model.encoding is {self.model.encoding!r}; use one of {', '.join(encodings)}"
            )
        if data.bits is not None:
            with bad_input_at("data", BadInput):
                check_bits(data.tasks, data.bits)
        if {TEXT in data.tasks, bool(data.text), bool(data.text_vocabulary)} == {True, False}:
            raise BadInput(
                'the task "text", data.text and data.text_vocabulary require each other; set all '
                "or none"
            )
        if data.shares and len(data.shares) != len(data.tasks):
            raise BadInput("data.shares needs one share for each task, or none")
        if bool(training.questions) != bool(training.batch_questions):
            raise BadInput(
                "training.questions and training.batch_questions require each other; "
                "set both or neither"
            )
        if training.batch_questions and TEXT in data.tasks:
            raise BadInput('training.batch_questions has no meaning for the task "text"')
        self.config(1).check()


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Return the recipe in the file `name`, or the bundled one of that name, with overrides.

    overrides: `KEY=VALUE`, as in `bittoken train --set`. A recipe may extend another by
    `base = "…"` and then contains only the differences. Raises BadInput, naming file and field, if
    the recipe is invalid.
    """
    path = _find(str(name))
    with bad_input_at(path, ValueError, BadInput, RecursionError):
        raw = _read(path)
        for override in overrides:
            raw = merge_parameters(raw, _parse_override(override))
        raw.setdefault("name", path.stem)
        recipe = msgspec.convert(raw, Recipe)
        recipe.check()
    return recipe


def bundled_recipes() -> dict[str, str]:
    """Return the bundled recipes: name and description, the comment on the first line."""
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for path in sorted(RECIPES.glob("*.toml"))
    }


def _find(name: str, folder: Path = RECIPES) -> Path:
    for path in (Path(name), folder / f"{name}.toml", RECIPES / f"{name}.toml"):
        if path.is_file():
            return path
    raise BadInput(f"no recipe {name!r}; use a TOML file or one of {', '.join(bundled_recipes())}")


def _read(path: Path) -> dict[str, Any]:
    """Return the tables of a recipe, with those of the recipe that it extends."""
    raw = read_toml(path)
    if "base" not in raw:
        return raw
    inherited = _read(_find(str(raw.pop("base")), path.parent))
    inherited.pop("name", None)
    return merge_parameters(inherited, raw)


def _parse_override(text: str) -> dict[str, Any]:
    """Return `model.norm=layer` as a nested table.

    The value is TOML; a bare word is a string, an empty value is None.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"--set {text!r}: use KEY=VALUE, for example model.norm=layer")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip() or None
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    result: dict[str, Any] = parsed
    return result


def _check_tasks(field: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInput(f"{field}: unknown task {name!r}; use {', '.join(known)}")
    if len(set(names)) != len(names):
        raise BadInput(f"{field}: a task is listed twice")
