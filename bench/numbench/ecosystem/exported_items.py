"""Items, metric values and files as other tools get them, identical to those of numbench's runs."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from numbench.core import jsonl
from numbench.dataset.store import MANIFEST, Dataset
from numbench.errors import BadInput
from numbench.records import FileEntry, Item, Score
from numbench.scoring import has_requested_format, headline_score
from numbench.tasks.prompts import load_prompt_set

NOTICE = "NOTICE"
"""In the folder of a dataset whose questions others wrote: their copyright and license."""

METRIC_NAMES = ("log_smape", "exact_match", "compliance")
"""Metrics whose means, 0 to 1, other tools report for each task.

log_smape is exact match in the comparison tasks, as in the table of that name. compliance is 1 if
the response has the requested format.
"""


def metric_values(item: Item, score: Score, allows_working: bool = False) -> dict[str, float]:
    """Return the value of each of `METRIC_NAMES`, 0 to 1.

    allows_working: whether the prompt allows text before the answer.
    """
    return {
        "log_smape": headline_score(item.task, score),
        "exact_match": float(score.exact_match),
        "compliance": float(has_requested_format(score, allows_working)),
    }


def system_prompt(task: str) -> str:
    """Return the system prompt of a task in the set `paper`."""
    return load_prompt_set().system_prompt(task) or ""


def dataset_version(dataset: Dataset) -> str:
    """Return name and content hash of a dataset: `v1@3f9c2a`."""
    return f"{dataset.name}@{dataset.manifest.sha256[:6]}"


def copy_dataset(source: Dataset, out: Path) -> None:
    """Copy the files of `source` to the folder `out`, the manifest last.

    Raises BadInput if `out` contains another dataset or a file does not match the manifest.
    """
    if (out / MANIFEST).is_file() and Dataset(out).manifest.sha256 != source.manifest.sha256:
        raise BadInput(f"{out} contains another dataset; choose another --out")
    for entry in source.manifest.files:
        copy_file(source, entry, out / entry.file)
    copy_notice(source, out)
    jsonl.write_json(out / MANIFEST, source.manifest)


def copy_file(source: Dataset, entry: FileEntry, path: Path) -> None:
    """Copy one file of `source` to `path`. Raises BadInput if it does not match the manifest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.check_file(entry), path)


def copy_notice(source: Dataset, out: Path) -> list[Path]:
    """Copy the copyright notice of questions that others wrote to `out`; return the file."""
    if not (source.path / NOTICE).is_file():
        return []
    shutil.copyfile(source.path / NOTICE, out / NOTICE)
    return [out / NOTICE]


def render_template(template: str, /, **values: object) -> str:
    """Return a template of this folder with its values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("numbench.ecosystem", ""),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values)


def require_extra(module: str, extra: str) -> None:
    """Raise BadInput with the install command if a module is not installed."""
    if find_spec(module) is None:
        raise BadInput(f"this needs {module}: pip install 'numbench[{extra}]'")
