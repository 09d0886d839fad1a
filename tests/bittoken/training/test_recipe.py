"""Recipes: files, inheritance, overrides and error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bittoken.encodings import ENCODINGS
from bittoken.training.recipe import Recipe, bundled_recipes, load_recipe
from bittoken.vocabulary import ENCODING_NAMES
from numbench.errors import BadInput
from numbench.tasks import PAPER_TASKS

PLAIN = '[model]\nencoding = "bittoken"\n'


def written(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def error_message(path: Path | str, *overrides: str) -> str:
    """Return the error message, which must be one line."""
    with pytest.raises(BadInput) as error:
        load_recipe(path, overrides)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_minimal_recipe_has_the_papers_settings(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, PLAIN))
    assert recipe.name == "mine"
    assert (recipe.model.layers, recipe.model.heads, recipe.model.width) == (6, 6, 768)
    assert recipe.data.tasks == tuple(PAPER_TASKS)
    assert recipe.training.tokens == 10_000_000_000
    # 10¹⁰ over 192 · 1024, rounded down.
    assert recipe.training.steps == 50_862
    assert recipe.optimizer.muon == 0.02
    assert recipe.base == 2


def test_difficulty_base_defaults_to_the_encodings_base(tmp_path: Path) -> None:
    for name in ENCODING_NAMES:
        recipe = load_recipe(written(tmp_path, PLAIN), [f"model.encoding={name}"])
        assert recipe.base == (ENCODINGS[name].base if name in ENCODINGS else 10)
    in_bits = {name for name, encoding in ENCODINGS.items() if encoding.base == 2}
    assert in_bits == {"bittoken", "bittoken-no-reciprocal", "base2-fixed"}
    assert load_recipe(written(tmp_path, PLAIN), ["data.base=10"]).base == 10


def test_recipe_extends_its_base(tmp_path: Path) -> None:
    written(tmp_path, 'name = "other"\n' + PLAIN + "layers = 2\n[data]\ndigits = 4\n", "below")
    path = written(tmp_path, 'base = "below"\nmodel.norm = "layer"\n')
    recipe = load_recipe(path)
    assert (recipe.name, recipe.model.norm, recipe.model.layers) == ("mine", "layer", 2)
    assert recipe.data.digits == 4
    third = written(tmp_path, 'base = "mine"\n[model]\nlayers = 3\n', "third")
    assert (load_recipe(third).model.layers, load_recipe(third).model.norm) == (3, "layer")


@pytest.mark.parametrize(
    ("override", "part", "field", "value"),
    [
        ("model.norm=layer", "model", "norm", "layer"),
        ('model.norm="layer"', "model", "norm", "layer"),
        ("model.width = 192", "model", "width", 192),
        ('data.tasks=["minmax", "std"]', "data", "tasks", ("minmax", "std")),
        ("data.balance=0.5", "data", "balance", 0.5),
        ("training.compile=true", "training", "compile", True),
        ("optimizer.muon=1e-3", "optimizer", "muon", 0.001),
    ],
)
def test_overrides(tmp_path: Path, override: str, part: str, field: str, value: Any) -> None:
    recipe: Recipe = load_recipe(written(tmp_path, PLAIN), [override])
    assert getattr(getattr(recipe, part), field) == value


def test_empty_override_removes_a_field(tmp_path: Path) -> None:
    named = written(tmp_path, PLAIN + '[data]\ntext_vocabulary = "ranks.tiktoken"\n')
    assert load_recipe(named).data.text_vocabulary == "ranks.tiktoken"
    assert load_recipe(named, ["data.text_vocabulary="]).data.text_vocabulary is None


def test_last_override_of_a_field_wins(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, PLAIN), ["model.layers=1", "model.layers=2"])
    assert recipe.model.layers == 2


DIFFERENCES: dict[str, dict[str, Any]] = {
    "base10": {"model.encoding": "base10"},
    "concat": {"model.combination": "concat"},
    "head-mlp": {"model.head": "mlp"},
    "head-none": {"model.head": "none"},
    "layer-norm": {"model.norm": "layer"},
    "no-curriculum": {"data.curriculum": ()},
    "no-reciprocal": {"model.encoding": "bittoken-no-reciprocal"},
    "product": {"model.combination": "product"},
    "sampling-arithmetic": {"data.balance": 1.0},
    "sampling-geometric": {"data.balance": 0.0},
    "weighted": {"model.combination": "weighted"},
    "weighted-sum": {"model.combination": "weighted-sum"},
    "zero-pad": {"model.combination": "zero-pad"},
}


PADDED = (
    "base10", "head-mlp", "head-none", "layer-norm", "sampling-arithmetic", "sampling-geometric"
)  # fmt: skip
"""The ablations that the paper compares with its zero-pad network."""


def fields(recipe: Recipe) -> dict[str, Any]:
    """Return all fields but the name, as `part.field`."""
    parts = {part: getattr(recipe, part) for part in ("model", "data", "training", "optimizer")}
    return {
        f"{part}.{field}": value
        for part, of in parts.items()
        for field, value in msgspec.structs.asdict(of).items()
    }


@pytest.mark.parametrize("ablation", DIFFERENCES)
def test_ablation_differs_from_its_reference_in_one_field(ablation: str) -> None:
    reference = fields(load_recipe("ablation-zero-pad" if ablation in PADDED else "multi-bittoken"))
    result = fields(load_recipe(f"ablation-{ablation}"))
    assert {f: v for f, v in result.items() if v != reference[f]} == DIFFERENCES[ablation]


@pytest.mark.parametrize("encoding", ["fone", "xval", "digit", "subword"])
def test_every_encoding_has_a_recipe_without_curriculum(encoding: str) -> None:
    reference = fields(load_recipe(f"multi-{encoding}")) | {"data.curriculum": ()}
    assert fields(load_recipe(f"ablation-no-curriculum-{encoding}")) == reference


@pytest.mark.parametrize("encoding", ["bittoken", "fone", "xval", "digit", "subword"])
@pytest.mark.parametrize("setting", ["solo", "multi"])
def test_recipes_of_a_setting_differ_only_in_the_encoding(setting: str, encoding: str) -> None:
    reference = fields(load_recipe(f"{setting}-bittoken")) | {"model.encoding": encoding}
    assert fields(load_recipe(f"{setting}-{encoding}")) == reference


def test_every_bundled_recipe_loads() -> None:
    assert len(bundled_recipes()) > 10
    for name in bundled_recipes():
        assert load_recipe(name).name == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN + "depth = 3\n", ["unknown field `depth`", "$.model"]),
        (PLAIN + "[date]\ndigits = 3\n", ["unknown field `date`"]),
        (PLAIN + 'layers = "three"\n', ["Expected `int`, got `str`", "$.model.layers"]),
        (PLAIN + "[training]\nseed = 1.5\n", ["Expected `int`", "$.training.seed"]),
        (PLAIN + 'combination = "glue"\n', ["'glue'", "$.model.combination"]),
        (PLAIN + "[data]\nbase = 8\n", ["8", "$.data.base"]),
        ("model = 3\n", ["Expected `object`, got `int`", "$.model"]),
        ("", ["missing required field `model`"]),
        ("[model]\nlayers = 3\n", ["missing required field `encoding`", "$.model"]),
        ('[model]\nencoding = "roman"\n', ["model.encoding is 'roman'", "bittoken", "digit"]),
        (PLAIN + '[data]\ntasks = ["adition"]\n', ["data.tasks", "'adition'", "addition"]),
        (PLAIN + '[data]\ncurriculum = ["text"]\n', ["data.curriculum", "unknown task 'text'"]),
        (PLAIN + '[data]\ntasks = ["std", "std"]\n', ["data.tasks", "twice"]),
        (PLAIN + "[data]\ntasks = []\n", ["data.tasks is empty"]),
        (PLAIN + "[data]\ndigits = 1\n", ["data.digits is 1", "2 to 17"]),
        (PLAIN + "[data]\nshift = 2\n", ["data.shift requires data.bits"]),
        (PLAIN + "[data]\nbits = 99\n", ["data: 99 bits", "2 to 24"]),
        (PLAIN + "[data]\nbits = 8\n", ["data: task 'exponentiation'", "multiplication"]),
        (PLAIN + "[data]\ncurriculum_end = 2\n", ["data.curriculum_end is 2", "0 to 1"]),
        (PLAIN + "[training]\nquestions = 99\n", ["training.batch_questions", "set both"]),
        (PLAIN + "[training]\nstop_exact = 90\n", ["training.stop_exact is 90", "0 to 1"]),
        (PLAIN + "[training]\nvalidation_items = 0\n", ["training.validation_items"]),
        (PLAIN + "[data]\nbalance = 2\n", ["data.balance is 2", "at most 1"]),
        (PLAIN + '[data]\ntasks = ["text"]\n', ["data.text", "require each other"]),
        (PLAIN + '[data]\ntext = "books"\n', ["data.text", "require each other"]),
        (PLAIN + "heads = 5\n", ["model.width is 768", "multiple of twice model.heads (5)"]),
        (PLAIN + "layers = 0\n", ["model.layers is 0", "at least 1"]),
        (PLAIN + "width = 96\n", ["model.width is 96", "128 channels", "weighted"]),
        (PLAIN + "[training]\ntokens = 0\n", ["training.tokens must be at least 1"]),
        (PLAIN + "[training]\nmicro_tokens = -1\n", ["training.micro_tokens"]),
        (PLAIN + "[data]\nbalance = nan\n", ["data.balance is nan"]),
        (PLAIN + "[data]\nmost_share = 0\n", ["data.most_share is 0"]),
        (PLAIN + "[data]\nmost_share = 1.1\n", ["data.most_share is 1.1"]),
        (PLAIN + "[training]\nnumber_loss = -1\n", ["training.number_loss"]),
        (PLAIN + "[optimizer]\nmuon = -0.1\n", ["optimizer.muon must not be negative"]),
        (PLAIN + "[optimizer]\nwarmup = 1\n", ["optimizer.warmup is 1", "below 1"]),
        (PLAIN + "[optimizer]\nmomentum = -0.5\n", ["optimizer.momentum is -0.5"]),
        (PLAIN + "layers = \n", ["line 3"]),
        ("base = 3\n" + PLAIN, ["base is 3", "name of a recipe"]),
        ('base = "nowhere"\n', ["no recipe 'nowhere'", "multi-bittoken"]),
        ('base = "mine"\n', ["base refers back to this file"]),
    ],
)
def test_invalid_recipe_is_reported_with_file_and_field(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    path = written(tmp_path, text)
    message = error_message(path)
    assert str(path) in message
    for part in expected:
        assert part in message


@pytest.mark.parametrize("back", ["mine", "../{folder}/mine"])
def test_circular_bases_are_rejected(tmp_path: Path, back: str) -> None:
    path = written(tmp_path, 'base = "other"\n')
    written(tmp_path, f'base = "{back.format(folder=tmp_path.name)}"\n', "other")
    assert "base refers back to this file" in error_message(path)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model.layers", "use KEY=VALUE"),
        ("=3", "use KEY=VALUE"),
        (" =3", "use KEY=VALUE"),
        ("model.layers=", "$.model.layers"),
        ("model.norm=", "$.model.norm"),
        ("model.depth=", "unknown field `depth`"),
        ("model.layers=many", "$.model.layers"),
        ("model.depth=3", "unknown field `depth`"),
        ("model=3", "$.model"),
        ("model.layers.more=3", "$.model.layers"),
        ("data.tasks=minmax", "$.data.tasks"),
    ],
)
def test_invalid_override_is_reported(tmp_path: Path, override: str, expected: str) -> None:
    assert expected in error_message(written(tmp_path, PLAIN), override)


def test_unknown_recipe_is_reported_with_the_bundled_ones() -> None:
    message = error_message("no-such")
    assert "no recipe 'no-such'" in message
    assert "cpu" in message


def test_recipe_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    assert str(path) in error_message(path)
