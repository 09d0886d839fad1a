"""The whole way without any key: benchmark, in-process models, journal, scores, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.report import ReportResult, report
from bench.runner import run
from bench.runner.spec import RunSpec
from bench.scoring import judge

MODELS = ("baseline/float64", "baseline/float32", "baseline/bfloat16")


def demo(out: Path = Path("results/demo"), say: Callable[[str], None] = print) -> ReportResult:
    """Ask the arithmetic baselines all of `v1` and report them beside the published models."""
    folders = []
    for model in MODELS:
        say(f"numbench run --model {model}")
        spec = RunSpec(model, out=out / model.replace("/", "-"))
        folders.append(run(spec, judge=judge).path)
    say(f"numbench report {' '.join(map(str, folders))} --out {out / 'report'}")
    return report(folders, out=out / "report")
