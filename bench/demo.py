"""The whole way without any key: benchmark, in-process models, journal, scores, report."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from bench.report import ReportResult, report
from bench.runner import run
from bench.runner.spec import RunSpec
from bench.scoring import judge

BASELINES = ("baseline/float64", "baseline/float32", "baseline/bfloat16")
SMALL_MODEL = "checkpoint/small"


def demo(out: Path = Path("results/demo"), say: Callable[[str], None] = print) -> ReportResult:
    """Ask `v1` of who needs no key, and report them beside the published models.

    The arithmetic baselines, and, where torch is installed, the small model that comes along.
    """
    models: tuple[str, ...] = BASELINES
    if all(find_spec(package) for package in ("torch", "safetensors")):
        models += (SMALL_MODEL,)
    else:
        say(f"{SMALL_MODEL} is left out: it needs pip install 'numbench[local]'")
    folders = []
    for model in models:
        say(f"numbench run --model {model}")
        spec = RunSpec(model, out=out / model.replace("/", "-"))
        folders.append(run(spec, judge=judge).path)
    say(f"numbench report {' '.join(map(str, folders))} --out {out / 'report'}")
    return report(folders, out=out / "report")
