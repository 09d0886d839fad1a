"""A demonstration without an API key: in-process models, their runs, and a report."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from numbench.reporting import ReportResult, report
from numbench.runner import run
from numbench.runner.spec import RunSpec
from numbench.scoring import is_correct

BASELINES = ("baseline/float64", "baseline/float32", "baseline/bfloat16")
SMALL_MODEL = "checkpoint/small"


def demo(
    out: Path = Path("results/demo"),
    on_message: Callable[[str], None] = print,
    dataset: str | Path = "v1",
) -> ReportResult:
    """Run the models that need no API key on a dataset, and report them with the published ones.

    These are the arithmetic baselines and, if torch is installed, the bundled small model.
    on_message: receives a message before each step.
    """
    models: tuple[str, ...] = BASELINES
    if all(find_spec(package) for package in ("torch", "safetensors")):
        models += (SMALL_MODEL,)
    else:
        on_message(f"{SMALL_MODEL} is skipped: it needs pip install 'numbench[local]'")
    folders = []
    for model in models:
        on_message(f"numbench run --model {model} --dataset {dataset}")
        spec = RunSpec(model, dataset=dataset, out=out / model.replace("/", "-"))
        folders.append(run(spec, judge=is_correct).path)
    on_message(f"numbench report {' '.join(map(str, folders))} --out {out / 'report'}")
    return report(folders, out=out / "report", on_progress=on_message)
