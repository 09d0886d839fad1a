"""Recipes: the settings of a training, read from a TOML file that may extend another."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bittoken.config import ModelConfig, ModelShape
from bittoken.encodings import ENCODINGS
from bittoken.training.optimizers import OptimizerConfig
from bittoken.vocabulary import ENCODING_NAMES
from numbench.errors import BadInput
from numbench.tasks import PAPER_TASKS, TASKS, short_integers

TEXT = "text"
"""The task of next-token prediction on text, in addition to the number tasks."""

HARD_TASKS = ("multiplication", "division", "exponentiation", "mean", "std")
"""The tasks that the paper trains with a curriculum."""

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
"""The folder of the bundled recipes."""

RECIPE_FILE = "recipe.json"
"""The file in a training's folder that holds its recipe."""


class DataPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[data]`: the training data.

    tasks: names of number tasks, and "text". curriculum: the tasks that start with easy questions.
    digits: maximum number of significant digits of an operand. bits: if set, operands are integers
    of at most this many bits instead. shift: with bits, operands are divided by 10^j with j uniform
    on {1 … shift}; 0: integers. base: the base in which difficulty is counted, 2 or 10; by default
    the base of the encoding. falling_threshold: whether the score that unlocks the next level
    decreases during training (paper); otherwise it stays at 0.9. curriculum_end: the share of the
    training after which every curriculum is at its last level, whatever the score; None: no limit.
    balance: the exponent λ of the tasks' shares. most_share: r_max, the maximum share of a task.
    folder: a dataset in Parquet, read instead of generating items during training. text: a folder
    of .parquet or .txt files. text_vocabulary: a file of GPT-2's ranks or a saved tokenizer;
    without it, a vocabulary of at most `text_size` tokens is trained on the text.
    """

    tasks: tuple[str, ...] = tuple(PAPER_TASKS)
    curriculum: tuple[str, ...] = HARD_TASKS
    digits: int = 15
    bits: int | None = None
    shift: int = 0
    base: Literal[2, 10] | None = None
    falling_threshold: bool = True
    curriculum_end: float | None = None
    balance: float = -1.0
    most_share: float = 1.0
    folder: str | None = None
    text: str | None = None
    text_vocabulary: str | None = None
    text_size: int = 8192


class TrainingPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[training]`: length, batch size and intervals.

    tokens: the total budget, in tokens that enter the network. batch_tokens: tokens per step, over
    all processes. questions, batch_questions: budget and batch size in questions; if set, they
    replace the sizes in tokens, so that encodings see equally many questions per step.
    micro_tokens: tokens per forward pass of a process; 0 means its whole share of the batch.
    number_loss: the weight of the number loss. loss_scale: the value to which each task's loss is
    normalised after the warm-up; 0 turns this off. validate_every: steps between validations.
    validation_items: questions of each task per validation, also for the curriculum.
    validation_tokens: if set, the approximate tokens per validation instead. stop_exact: the
    exact match of every task that ends the training when two consecutive validations reach it; 0
    means never. save_every: steps between saved states. threads: CPU threads; 0 means torch's
    default. data_processes: processes that prepare the batches of each training process; 0: a
    thread.
    """

    tokens: int = 10_000_000_000
    batch_tokens: int = 192 * 1024
    questions: int = 0
    batch_questions: int = 0
    micro_tokens: int = 0
    number_loss: float = 10.0
    loss_scale: float = 10.0
    validate_every: int = 32
    validation_items: int = 384
    validation_tokens: int = 0
    stop_exact: float = 0.0
    save_every: int = 1000
    seed: int = 1
    precision: Literal["bf16", "float32"] = "bf16"
    compile: bool = False
    threads: int = 0
    data_processes: int = 0

    @property
    def steps(self) -> int:
        """The total number of steps, if the training does not end early."""
        if self.batch_questions:
            return max(self.questions // self.batch_questions, 1)
        return max(self.tokens // self.batch_tokens, 1)


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a training."""

    name: str
    model: ModelShape
    data: DataPart = DataPart()
    training: TrainingPart = TrainingPart()
    optimizer: OptimizerConfig = OptimizerConfig()

    @property
    def base(self) -> int:
        """The base in which difficulty is counted."""
        encoding = ENCODINGS.get(self.model.encoding)
        return self.data.base or (encoding.base if encoding else 10)

    def config(self, vocabulary: int) -> ModelConfig:
        """Return the configuration of the network for a vocabulary of this size."""
        return ModelConfig(vocabulary=vocabulary, **msgspec.structs.asdict(self.model))

    def check(self) -> None:
        """Raise BadInput if a setting is invalid."""
        if self.model.encoding not in ENCODING_NAMES:
            known = ", ".join(ENCODING_NAMES)
            raise BadInput(f"model.encoding is {self.model.encoding!r}; use one of {known}")
        _check_tasks("data.tasks", self.data.tasks, (*PAPER_TASKS, TEXT))
        _check_tasks("data.curriculum", self.data.curriculum, tuple(PAPER_TASKS))
        if not self.data.tasks:
            raise BadInput("data.tasks is empty: name at least one task")
        self._check_operands()
        if (TEXT in self.data.tasks) != (self.data.text is not None):
            raise BadInput('data.text and the task "text" require each other; set both or neither')
        if not self.data.balance <= 1:
            raise BadInput(f"data.balance is {self.data.balance}; use at most 1")
        if not 0 < self.data.most_share <= 1:
            raise BadInput(
                f"data.most_share is {self.data.most_share}; use a value above 0, at most 1"
            )
        if not 0 <= (self.data.curriculum_end or 0) <= 1:
            raise BadInput(f"data.curriculum_end is {self.data.curriculum_end}; use 0 to 1")
        self._check_training()
        self._check_optimizer()
        self.config(1).check()

    def _check_operands(self) -> None:
        data = self.data
        if not 2 <= data.digits <= 17:
            raise BadInput(f"data.digits is {data.digits}; use 2 to 17")
        if data.bits is None:
            if data.shift:
                raise BadInput("data.shift requires data.bits; set both or neither")
            return
        try:
            short_integers.check_settings(data.tasks, data.bits, data.shift)
        except ValueError as error:
            raise BadInput(f"data: {error}") from None
        if data.folder is not None:
            raise BadInput("data.bits and data.folder exclude each other; set one of them")

    def _check_training(self) -> None:
        training = self.training
        positive = ("tokens", "batch_tokens", "validate_every", "validation_items", "save_every")
        for name in positive:
            if getattr(training, name) < 1:
                raise BadInput(f"training.{name} must be at least 1")
        for name in (
            *("questions", "batch_questions", "micro_tokens", "validation_tokens", "threads"),
            *("data_processes", "number_loss", "loss_scale"),
        ):
            if not getattr(training, name) >= 0:
                raise BadInput(f"training.{name} must not be negative")
        if bool(training.questions) != bool(training.batch_questions):
            raise BadInput(
                "training.questions and training.batch_questions require each other; "
                "set both or neither"
            )
        if training.batch_questions and TEXT in self.data.tasks:
            raise BadInput('training.batch_questions has no meaning for the task "text"')
        if not 0 <= training.stop_exact <= 1:
            raise BadInput(f"training.stop_exact is {training.stop_exact}; use 0 to 1")

    def _check_optimizer(self) -> None:
        for name in ("muon", "embedding", "heads", "scalars", "scale"):
            if not getattr(self.optimizer, name) >= 0:
                raise BadInput(f"optimizer.{name} must not be negative")
        for name in ("momentum", "warmup"):
            share = getattr(self.optimizer, name)
            if not 0 <= share < 1:
                raise BadInput(f"optimizer.{name} is {share}; use a value from 0 to below 1")


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Return the recipe in the file `name`, or the bundled one of that name, with overrides.

    overrides: `KEY=VALUE`, as in `bittoken train --set`. A recipe may extend another by
    `base = "…"` and then contains only the differences. Raises BadInput, naming file and field, if
    the recipe is invalid.
    """
    path = _find(name)
    raw = _read(path, ())
    for override in overrides:
        raw = _merge(raw, _parse_override(override))
    raw.setdefault("name", path.stem)
    try:
        recipe = msgspec.convert(raw, Recipe)
        recipe.check()
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    return recipe


def bundled_recipes() -> list[str]:
    """Return the names of the bundled recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def recipe_description(name: str) -> str:
    """Return the description of a bundled recipe: the comment on its first line."""
    text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def _find(name: str | Path) -> Path:
    for path in (Path(name), RECIPES / f"{name}.toml"):
        if path.is_file():
            return path
    raise BadInput(
        f"no recipe {str(name)!r}; use a TOML file or one of {', '.join(bundled_recipes())}"
    )


def _read(path: Path, visited: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in visited:
        raise BadInput(f"{path}: base refers back to this file")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    base = raw.pop("base", None)
    if base is None:
        return raw
    if not isinstance(base, str):
        raise BadInput(f"{path}: base is {base!r}; use the name of a recipe, in quotes")
    sibling = path.parent / f"{base}.toml"
    try:
        base_path = sibling if sibling.is_file() else _find(base)
    except BadInput as error:
        raise BadInput(f"{path}: base: {error}") from None
    inherited = _read(base_path, (*visited, path.resolve()))
    inherited.pop("name", None)
    return _merge(inherited, raw)


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


def _merge(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        both_tables = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merge(old, value) if both_tables else value  # type: ignore[arg-type]
    return merged


def _check_tasks(field: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInput(f"{field}: unknown task {name!r}; use {', '.join(known)}")
    if len(set(names)) != len(names):
        raise BadInput(f"{field}: a task is listed twice")


def task_display_name(task: str) -> str:
    """Return the name of a task, or of the text data, in tables and figures."""
    return TASKS[task].display if task in TASKS else task.capitalize()


def differing_fields(old: Any, new: Any, name: str = "") -> list[str]:
    """Return the fields in which two records differ, nested ones as `model.width`."""
    old, new = msgspec.to_builtins(old), msgspec.to_builtins(new)
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(set(old) | set(new))
        parts = [
            differing_fields(old.get(k), new.get(k), f"{name}.{k}" if name else k) for k in keys
        ]
        return [field for part in parts for field in part]
    return [] if _tuple_to_list(old) == _tuple_to_list(new) else [name]


def _tuple_to_list(value: Any) -> Any:
    """Return a tuple of a record as the list that JSON has for it."""
    return list(value) if isinstance(value, tuple) else value
