"""Recipes: what a file says, what it takes from another, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.bittoken.training.recipe import Recipe, load_recipe, shipped_recipes
from bench.errors import BadInput
from bench.tasks import TASKS

PLAIN = '[model]\nencoding = "bittoken"\n'


def written(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path | str, *overrides: str) -> str:
    """What is said, in one line."""
    with pytest.raises(BadInput) as error:
        load_recipe(path, overrides)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_a_recipe_of_two_lines_is_the_papers_setting(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, PLAIN))
    assert recipe.name == "mine"
    assert (recipe.model.layers, recipe.model.heads, recipe.model.width) == (6, 6, 768)
    assert recipe.data.tasks == tuple(TASKS)
    assert recipe.training.tokens == 10_000_000_000
    # 10¹⁰ over 192 · 1024, rounded down.
    assert recipe.training.steps == 50_862
    assert recipe.optimizer.muon == 0.02
    assert recipe.base == 2


def test_difficulty_is_counted_in_the_base_of_the_encoding(tmp_path: Path) -> None:
    assert load_recipe(written(tmp_path, PLAIN), ["model.encoding=digit"]).base == 10
    assert load_recipe(written(tmp_path, PLAIN), ["data.base=10"]).base == 10


def test_a_recipe_says_only_what_differs_from_its_base(tmp_path: Path) -> None:
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


def test_an_override_of_nothing_leaves_a_field_out(tmp_path: Path) -> None:
    named = written(tmp_path, PLAIN + '[data]\ntext_vocabulary = "ranks.tiktoken"\n')
    assert load_recipe(named).data.text_vocabulary == "ranks.tiktoken"
    assert load_recipe(named, ["data.text_vocabulary="]).data.text_vocabulary is None


def test_of_two_overrides_the_last_one_counts(tmp_path: Path) -> None:
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
"""Those that the paper holds against its zero-pad network."""


def fields(recipe: Recipe) -> dict[str, Any]:
    """`part.field` and its value, but for the name."""
    parts = {part: getattr(recipe, part) for part in ("model", "data", "training", "optimizer")}
    return {
        f"{part}.{field}": value
        for part, of in parts.items()
        for field, value in msgspec.structs.asdict(of).items()
    }


@pytest.mark.parametrize("ablation", DIFFERENCES)
def test_an_ablation_differs_in_what_its_name_says_alone(ablation: str) -> None:
    whole = fields(load_recipe("ablation-zero-pad" if ablation in PADDED else "multi-bittoken"))
    found = fields(load_recipe(f"ablation-{ablation}"))
    assert {f: v for f, v in found.items() if v != whole[f]} == DIFFERENCES[ablation]


@pytest.mark.parametrize("encoding", ["fone", "xval", "digit", "subword"])
def test_every_encoding_has_its_setting_without_curriculum(encoding: str) -> None:
    whole = fields(load_recipe(f"multi-{encoding}")) | {"data.curriculum": ()}
    assert fields(load_recipe(f"ablation-no-curriculum-{encoding}")) == whole


@pytest.mark.parametrize("encoding", ["bittoken", "fone", "xval", "digit", "subword"])
@pytest.mark.parametrize("setting", ["solo", "multi"])
def test_the_settings_differ_by_encoding_alone(setting: str, encoding: str) -> None:
    whole = fields(load_recipe(f"{setting}-bittoken")) | {"model.encoding": encoding}
    assert fields(load_recipe(f"{setting}-{encoding}")) == whole


def test_every_shipped_recipe_loads() -> None:
    assert len(shipped_recipes()) > 10
    for name in shipped_recipes():
        assert load_recipe(name).name == name


@pytest.mark.parametrize(
    ("text", "told"),
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
        (PLAIN + "[data]\nbalance = 2\n", ["data.balance is 2", "at most 1"]),
        (PLAIN + '[data]\ntasks = ["text"]\n', ["data.text", "belong together"]),
        (PLAIN + '[data]\ntext = "books"\n', ["data.text", "belong together"]),
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
        ('base = "mine"\n', ["base leads back to this file"]),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    path = written(tmp_path, text)
    message = refused(path)
    assert str(path) in message
    for part in told:
        assert part in message


@pytest.mark.parametrize("back", ["mine", "../{folder}/mine"])
def test_two_recipes_that_build_on_each_other_are_refused(tmp_path: Path, back: str) -> None:
    path = written(tmp_path, 'base = "other"\n')
    written(tmp_path, f'base = "{back.format(folder=tmp_path.name)}"\n', "other")
    assert "base leads back to this file" in refused(path)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("model.layers", "write KEY=VALUE"),
        ("=3", "write KEY=VALUE"),
        (" =3", "write KEY=VALUE"),
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
def test_a_wrong_override_is_told(tmp_path: Path, override: str, told: str) -> None:
    assert told in refused(written(tmp_path, PLAIN), override)


def test_an_unknown_recipe_is_told_with_the_known_ones() -> None:
    message = refused("no-such")
    assert "no recipe 'no-such'" in message
    assert "cpu" in message


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    assert str(path) in refused(path)
