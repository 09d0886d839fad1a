"""Recipes: defaults, bases, overrides and messages."""

from pathlib import Path

import msgspec
import pytest

from bittoken.recipe import bundled_recipes, load_recipe
from numbench.errors import BadInput
from tests.support.case_tables import each_row

PLAIN = '[model]\nencoding = "bittoken"\n'


def written(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_every_bundled_recipe_loads_and_has_a_description() -> None:
    recipes = bundled_recipes()
    assert {"cpu", "small", "integers-bittoken", "multi-bittoken", "solo-bittoken"} <= set(recipes)
    for name, description in recipes.items():
        assert load_recipe(name).name == name
        assert description.endswith(".") or ";" in description or ":" in description


@pytest.mark.parametrize("setting", ["multi", "solo"])
def test_recipes_of_a_setting_differ_only_in_the_encoding(setting: str) -> None:
    reference = load_recipe(f"{setting}-bittoken")
    for encoding in ("digit", "fone", "subword", "xval"):
        model = msgspec.structs.replace(reference.model, encoding=encoding)
        expected = msgspec.structs.replace(reference, name=f"{setting}-{encoding}", model=model)
        assert load_recipe(f"{setting}-{encoding}") == expected


def test_defaults_are_the_papers(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN)
    recipe = load_recipe(path)
    model = recipe.model
    assert (recipe.name, model.layers, model.heads, model.width) == ("mine", 6, 6, 768)
    assert recipe.training.steps == 10_000_000_000 // (192 * 1024)
    assert recipe.base == 2
    assert load_recipe(path, ["model.encoding=fone"]).base == 10
    # 100 steps: 1/10 … 10/10 in the first ten; then (1 + cos(π · done / 90)) / 2.
    short = load_recipe(path, ["training.tokens=1000", "training.batch_tokens=10"])
    rates = [short.rate_share(step) for step in (0, 4, 9, 10, 40, 55, 70, 100)]
    assert rates == pytest.approx([0.1, 0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0])


def test_a_base_is_extended_and_fields_are_overridden(tmp_path: Path) -> None:
    written(tmp_path, PLAIN + "layers = 3\nwidth = 192\n[data]\nbalance = 0.5\n", "base")
    path = written(tmp_path, 'base = "base"\nmodel.layers = 2\n')
    recipe = load_recipe(path, ["model.norm=layer", 'data.tasks=["mean"]', "data.bits="])
    model, data = recipe.model, recipe.data
    assert (recipe.name, model.layers, model.width, model.norm) == ("mine", 2, 192, "layer")
    assert (data.tasks, data.balance, data.bits) == (("mean",), 0.5, None)


@each_row(__file__, "invalid_recipes")
def test_an_invalid_recipe_or_override_is_reported(
    tmp_path: Path, text: str, override: str, expected: list[str]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as error:
        load_recipe(path, [override] if override else [])
    for part in (str(path), *expected):
        assert part in str(error.value)
