"""Runs and datasets in the formats of other tools."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from numbench.core.jsonl import check_output_folder
from numbench.errors import BadInput


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
        from numbench.reporting.baseline import write_baseline

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
