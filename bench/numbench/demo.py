"""A demonstration without an API key: in-process models, their runs, and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from numbench.core.jsonl import check_output_folder
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.reporting.build import ReportResult, report
from numbench.reporting.read import DEMO_RUNS
from numbench.runner.execution import run
from numbench.runner.spec import RunSpec
from numbench.scoring import is_correct

BASELINES = ("baseline/float64", "baseline/float32", "baseline/bfloat16")
SMALL_MODEL = "checkpoint/small"
INTEGERS = DatasetSettings(
    "integers",
    ("minmax", "interval", "sorting", "addition", "multiplication"),
    size=100,
    max_bits=8,
)
"""Questions that the small model can answer: tasks and operands of its training, other items."""

Message = Callable[[str], None]


def demo(
    out: Path = DEMO_RUNS,
    on_message: Message = print,
    dataset: str | Path = "paper",
) -> list[ReportResult]:
    """Run the models that need no API key, and return their reports.

    The arithmetic baselines run on `dataset`. If torch is installed, the bundled small model runs
    on integers, next to bfloat16 arithmetic.
    on_message: receives a message before each step.
    """
    check_output_folder(out, f"baseline-float64_{Path(dataset).name}")
    reports = [_run_and_report(BASELINES, dataset, out, "report", on_message)]
    if not all(find_spec(package) for package in ("torch", "safetensors")):
        on_message(f"{SMALL_MODEL} is skipped: it needs pip install 'numbench[local]'")
        return reports
    folder = out / INTEGERS.name
    on_message(
        f"numbench generate --name {INTEGERS.name} --tasks {','.join(INTEGERS.tasks)} "
        f"--numbers '{INTEGERS.max_bits} bits' --size {INTEGERS.size} --out {folder}"
    )
    generate(INTEGERS, folder)
    models = (BASELINES[-1], SMALL_MODEL)
    reports.append(_run_and_report(models, folder, out, "report-integers", on_message))
    return reports


def _run_and_report(
    models: Sequence[str],
    dataset: str | Path,
    out: Path,
    name: str,
    on_message: Message,
) -> ReportResult:
    folders = []
    for model in models:
        folder = out / f"{model.replace('/', '-')}_{Path(dataset).name}"
        on_message(f"numbench run --model {model} --dataset {dataset} --out {folder}")
        spec = RunSpec(model, dataset=dataset, out=folder)
        folders.append(run(spec, is_correct).path)
    on_message(f"numbench report {' '.join(map(str, folders))} --out {out / name}")
    return report(folders, out=out / name, on_progress=on_message)
