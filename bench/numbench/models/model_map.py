"""Prices, limits and capabilities of hosted models: litellm's model map, read as data.

The bundled extract (`model_map.csv`) has the fields that are used here, of text models only. The
map of an installed litellm replaces it if that is newer; litellm itself is not imported. After a
new release of litellm: `make model-map`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from numbench.models.litellm_map import MAP_FILE, ModelFacts, decode_map

EXTRACT = Path(__file__).with_name("model_map.csv")


class ModelMap(NamedTuple):
    """All models by name, and the version of litellm that they are from."""

    version: str
    models: Mapping[str, ModelFacts]

    @property
    def source(self) -> str:
        """The source of a price or a limit, in a few words."""
        return f"model map of litellm {self.version}"


@cache
def load_model_map() -> ModelMap:
    """Return the bundled map, or that of the installed litellm if it is newer and readable."""
    text = EXTRACT.read_text(encoding="utf-8")
    bundled_version = text.partition("\n")[0].rpartition(" ")[2]
    installed = _installed_map(newer_than=bundled_version)
    return installed or ModelMap(bundled_version, _read_extract(text))


def find_facts(route: str) -> ModelFacts | None:
    """Return the facts on the model of a route, None if the map lacks it.

    A route through OpenRouter has its own entry only, because providers behind it differ.
    """
    models = load_model_map().models
    name = route.removeprefix("litellm/")
    if "/" in name or name == route:
        return models.get(name)
    # litellm accepts the names of these providers alone.
    return models.get(f"openai/{name}") or models.get(f"anthropic/{name}")


_OPENROUTER_VENDORS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "x-ai": "xai",
}
"""OpenRouter's names of vendors, and those of the map."""


def find_vendor_facts(route: str) -> ModelFacts | None:
    """Return the facts on a model of OpenRouter at its own vendor, None if they are unknown."""
    provider, _, name = route.partition("/")
    vendor, _, name = name.partition("/")
    if provider != "openrouter" or vendor not in _OPENROUTER_VENDORS:
        return None
    if vendor == "anthropic":
        name = name.replace(".", "-")
    return load_model_map().models.get(f"{_OPENROUTER_VENDORS[vendor]}/{name}")


def write_extract(wheel: Path, path: Path = EXTRACT) -> ModelMap:
    """Write the extract of the map in a wheel of litellm to `path`."""
    version = wheel.name.split("-")[1]
    with ZipFile(wheel) as archive:
        models = decode_map(archive.read(MAP_FILE))
    text = io.StringIO()
    text.write(f"# Facts from the model map of litellm {version}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ModelFacts._fields)
    for facts in models.values():
        writer.writerow(_cell(value) for value in facts)
    path.write_text(text.getvalue(), encoding="utf-8")
    return ModelMap(version, models)


def _read_extract(text: str) -> dict[str, ModelFacts]:
    rows = csv.DictReader(io.StringIO(text.partition("\n")[2]))
    return {
        row["name"]: ModelFacts(
            name=row["name"],
            input=float(row["input"]) if row["input"] else None,
            output=float(row["output"]) if row["output"] else None,
            priced_up_to=int(row["priced_up_to"]) if row["priced_up_to"] else None,
            has_batch_price=row["has_batch_price"] == "yes",
            price_note=row["price_note"],
            context=int(row["context"]) if row["context"] else None,
            max_output=int(row["max_output"]) if row["max_output"] else None,
            reasons=row["reasons"] == "yes",
            has_schema=row["has_schema"] == "yes",
            levels=tuple(row["levels"].split()),
            lacks=tuple(row["lacks"].split()),
            retires=row["retires"],
        )
        for row in rows
    }


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def _installed_map(newer_than: str) -> ModelMap | None:
    try:
        installed = distribution("litellm")
        if _release(installed.version) <= _release(newer_than):
            return None
        content = Path(str(installed.locate_file(MAP_FILE))).read_bytes()
        models = decode_map(content)
    except (PackageNotFoundError, OSError, LookupError, TypeError, ValueError):
        # Its form is litellm's own and may change.
        return None
    return ModelMap(installed.version, models) if models else None


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
