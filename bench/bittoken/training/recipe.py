"""What a training run is: one TOML file, which may build on another."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bench.bittoken.config import ModelConfig, ModelShape
from bench.bittoken.training.optimizers import OptimizerConfig
from bench.bittoken.vocabulary import ENCODING_NAMES
from bench.errors import BadInput
from bench.paths import resource
from bench.tasks import TASKS

TEXT = "text"
"""The tenth task: next-token prediction on text."""

HARD_TASKS = ("multiplication", "division", "exponentiation", "mean", "std")
"""The tasks that the paper trains with a curriculum."""


class DataPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[data]`: what is trained on.

    tasks: names of the nine tasks, and "text". curriculum: those of them that begin with easy
    questions. digits: most significant digits of an operand. base: the digits that difficulty
    counts, 2 or 10; by default the base of the encoding. falling_threshold: whether the performance
    that opens the next level falls as time goes by (paper); otherwise it stays 0.9. balance: λ of
    the tasks' shares. most_share: r_max, the largest share of a task. folder: a dataset in Parquet
    to read instead of making items on the fly. text: a folder of .parquet or .txt files.
    text_vocabulary: a file of GPT-2's ranks or a saved tokenizer; without one, a vocabulary of
    `text_size` tokens is trained on the text.
    """

    tasks: tuple[str, ...] = tuple(TASKS)
    curriculum: tuple[str, ...] = HARD_TASKS
    digits: int = 15
    base: Literal[2, 10] | None = None
    falling_threshold: bool = True
    balance: float = -1.0
    most_share: float = 1.0
    folder: str | None = None
    text: str | None = None
    text_vocabulary: str | None = None
    text_size: int = 8192


class TrainingPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[training]`: how long, and in what steps.

    tokens: the whole budget, in tokens that enter the network. batch_tokens: of one step, over
    all processes. micro_tokens: of one pass of one process; 0 takes its share of the batch at once.
    number_loss: the weight of the number loss. loss_scale: what each task's loss is normalised to
    after the warm-up; 0 leaves losses as they are. validate_every: steps between validations.
    validation_tokens: of each, about. save_every: steps between checkpoints. threads: of a CPU;
    0 leaves the choice to torch.
    """

    tokens: int = 10_000_000_000
    batch_tokens: int = 192 * 1024
    micro_tokens: int = 0
    number_loss: float = 10.0
    loss_scale: float = 10.0
    validate_every: int = 32
    validation_tokens: int = 2 * 192 * 1024
    save_every: int = 1000
    seed: int = 1
    precision: Literal["bf16", "float32"] = "bf16"
    compile: bool = False
    threads: int = 0

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return max(self.tokens // self.batch_tokens, 1)


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run, whole."""

    name: str
    model: ModelShape
    data: DataPart = DataPart()
    training: TrainingPart = TrainingPart()
    optimizer: OptimizerConfig = OptimizerConfig()

    @property
    def base(self) -> int:
        """The base in which difficulty is counted."""
        return self.data.base or (2 if self.model.encoding.startswith("bittoken") else 10)

    def config(self, vocabulary: int) -> ModelConfig:
        """The network's shape."""
        return ModelConfig(vocabulary=vocabulary, **msgspec.structs.asdict(self.model))

    def check(self) -> None:
        """BadInput where something in it cannot be."""
        if self.model.encoding not in ENCODING_NAMES:
            known = ", ".join(ENCODING_NAMES)
            raise BadInput(f"model.encoding is {self.model.encoding!r}: give one of {known}")
        _check_tasks("data.tasks", self.data.tasks, (*TASKS, TEXT))
        _check_tasks("data.curriculum", self.data.curriculum, tuple(TASKS))
        if not self.data.tasks:
            raise BadInput("data.tasks is empty: name at least one task")
        if not 2 <= self.data.digits <= 17:
            raise BadInput(f"data.digits is {self.data.digits}: give 2 to 17")
        if (TEXT in self.data.tasks) != (self.data.text is not None):
            raise BadInput('data.text and the task "text" belong together: give both or neither')
        if not self.data.balance <= 1:
            raise BadInput(f"data.balance is {self.data.balance}: give at most 1")
        if not 0 < self.data.most_share <= 1:
            raise BadInput(f"data.most_share is {self.data.most_share}: give above 0, at most 1")
        self._check_training()
        self._check_optimizer()
        self.config(1).check()

    def _check_training(self) -> None:
        positive = ("tokens", "batch_tokens", "validate_every", "validation_tokens", "save_every")
        for name in positive:
            if getattr(self.training, name) < 1:
                raise BadInput(f"training.{name} must be at least 1")
        for name in ("micro_tokens", "threads", "number_loss", "loss_scale"):
            if not getattr(self.training, name) >= 0:
                raise BadInput(f"training.{name} must not be negative")

    def _check_optimizer(self) -> None:
        for name in ("muon", "embedding", "heads", "scalars"):
            if not getattr(self.optimizer, name) >= 0:
                raise BadInput(f"optimizer.{name} must not be negative")
        for name in ("momentum", "warmup"):
            share = getattr(self.optimizer, name)
            if not 0 <= share < 1:
                raise BadInput(f"optimizer.{name} is {share}: give 0 or more, below 1")


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in file `name`, or the shipped one of that name, with `KEY=VALUE` overrides.

    A recipe may name another by `base = "…"` and then says only what differs. BadInput, with file
    and field, for whatever is no recipe.
    """
    path = _find(name)
    raw = _read(path, ())
    for override in overrides:
        raw = _merged(raw, _override(override))
    raw.setdefault("name", path.stem)
    try:
        recipe = msgspec.convert(raw, Recipe)
        recipe.check()
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    return recipe


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with the package."""
    return sorted(path.stem for path in resource("recipes").glob("*.toml"))


def described(name: str) -> str:
    """What a shipped recipe says of itself: the comment on its first line."""
    first, _, _ = (resource("recipes") / f"{name}.toml").read_text(encoding="utf-8").partition("\n")
    return first.lstrip("# ") if first.startswith("#") else ""


def _find(name: str | Path) -> Path:
    for path in (Path(name), resource("recipes") / f"{name}.toml"):
        if path.is_file():
            return path
    raise BadInput(
        f"no recipe {str(name)!r}: give a TOML file, or one of: {', '.join(shipped_recipes())}"
    )


def _read(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in seen:
        raise BadInput(f"{path}: base leads back to this file")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    base = raw.pop("base", None)
    if base is None:
        return raw
    if not isinstance(base, str):
        raise BadInput(f"{path}: base is {base!r}: give the name of a recipe, as text")
    beside = path.parent / f"{base}.toml"
    try:
        found = beside if beside.is_file() else _find(base)
    except BadInput as error:
        raise BadInput(f"{path}: base: {error}") from None
    below = _read(found, (*seen, path.resolve()))
    below.pop("name", None)
    return _merged(below, raw)


def _override(text: str) -> dict[str, Any]:
    """`model.norm=layer` as a nested table. The value is TOML, a bare word text, nothing None."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"--set {text!r}: write KEY=VALUE, for example model.norm=layer")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip() or None
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    result: dict[str, Any] = parsed
    return result


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _check_tasks(field: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInput(f"{field}: unknown task {name!r}: give some of {', '.join(known)}")
    if len(set(names)) != len(names):
        raise BadInput(f"{field}: a task is named twice")
