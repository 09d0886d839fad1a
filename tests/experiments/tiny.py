"""Trainings of a second, declared in the same way as the comparison."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("minmax", "sorting", "addition")
RECIPE = """[model]
encoding = "bittoken"
layers = 1
heads = 2
width = 128
mlp = 1
[data]
tasks = ["minmax", "addition"]
curriculum = ["minmax", "addition"]
digits = 4
[training]
tokens = {tokens}
batch_tokens = 256
validate_every = 4
validation_tokens = 512
save_every = 4
threads = 1
"""
DECLARATION = """dataset = "{data}"
recipes = "{folder}"
[[runs]]
name = "multi-{{encoding}}-s1"
recipe = "tiny"
set = ["model.encoding={{encoding}}"]
each.encoding = ["bittoken", "digit"]
"""


def generate_data(folder: Path) -> Path:
    """Generate the evaluation dataset of the declared runs in `folder`."""
    settings = DatasetSettings(name="data", tasks=TASKS, size=4, max_digits=4)
    return generate(settings, folder).dataset.path


def declare(folder: Path, data: Path, tokens: int) -> Path:
    """Write the declaration of two runs under `folder`, `tokens` tokens each; return its path."""
    (folder / "tiny.toml").write_text(RECIPE.format(tokens=tokens))
    declaration = folder / "declaration.toml"
    declaration.write_text(DECLARATION.format(data=data, folder=folder))
    return declaration


def queue_arguments(declaration: Path, *arguments: str) -> list[str]:
    """Return the arguments of a queue whose folders are next to its declaration."""
    folder = declaration.parent
    folders = ["--out", str(folder / "stored"), "--scratch", str(folder / "scratch")]
    return ["--declared", str(declaration), *folders, *arguments]


def start_queue(declaration: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the queue in a process, with stderr on a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.queue", *queue_arguments(declaration, *arguments)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}/bench:{ROOT}"},
    )


def wait_for_log(declaration: Path, run: str, text: str) -> None:
    """Wait until the log of a run contains `text`."""
    log = declaration.parent / "scratch" / f"{run}.log"
    while not (log.is_file() and text in log.read_text()):
        time.sleep(0.05)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code and stderr."""
    assert process.stderr is not None
    output = process.stderr.read()
    return process.wait(), output
