"""Runs and datasets for other tools: items, metric values and files, as in runs of numbench."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from numbench.core import jsonl
from numbench.core.jsonl import check_output_folder
from numbench.core.texts import text_template
from numbench.dataset.store import MANIFEST, Dataset
from numbench.errors import BadInput
from numbench.records import FileEntry, Item, Score
from numbench.scoring import has_requested_format, headline_score
from numbench.tasks.prompts import load_prompt_set


class Exported(NamedTuple):
    """What was written. next_command: the command that uses it."""

    files: tuple[Path, ...]
    next_command: str


def export(source: Sequence[str], to: str, out: Path) -> Exported:
    """Write runs (to: inspect, baseline) or a dataset (lm-eval, huggingface) to `out`.

    Raises BadInput if `source` is not what the format is about, or if `out` holds other files.
    """
    if to in ("inspect", "baseline"):
        if not source:
            raise BadInput(f"--to {to} exports runs: name a run folder")
        if missing := [each for each in source if not Path(each).exists()]:
            raise BadInput(f"{missing[0]} is not a folder of runs, which --to {to} exports")
    if to != "inspect" and len(source) > 1:
        kind = "run" if to == "baseline" else "dataset"
        raise BadInput(f"--to {to} takes one {kind}, not {len(source)}")
    if to == "baseline":
        from numbench.reporting.compare import write_baseline

        write_baseline(Path(source[0]), out)
        return Exported((out,), f"numbench compare {out} results/NEW")
    check_output_folder(out)
    if to == "inspect":
        from numbench.ecosystem.inspect_log import export_runs

        logs = export_runs([Path(each) for each in source], out)
        return Exported(tuple(logs), f"inspect view --log-dir {out}")
    from numbench.dataset.store import open_dataset

    dataset = open_dataset(source[0] if source else "v1")
    if to == "lm-eval":
        from numbench.ecosystem.lm_eval_harness import export_lm_eval

        group = export_lm_eval(dataset, out)
        return Exported(
            (out / f"{group}.yaml",),
            f"lm_eval run --include_path {out} --tasks {group} --apply_chat_template "
            "--model MODEL --model_args ARGUMENTS",
        )
    from numbench.ecosystem.huggingface import export_huggingface

    names = shlex.join(["OWNER/NAME", str(out)])
    files = export_huggingface(dataset, out)
    return Exported(tuple(files), f"hf upload {names} . --repo-type dataset")


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


def render_template(name: str, **values: object) -> str:
    """Return a template of this folder with its values."""
    return text_template(Path(__file__).with_name(name), trims=False).render(values)


def require_extra(module: str, extra: str) -> None:
    """Raise BadInput with the install command if a module is not installed."""
    if find_spec(module) is None:
        raise BadInput(f"this needs {module}: pip install 'numbench[{extra}]'")
