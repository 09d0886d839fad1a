"""Trainings of seconds, declared as the comparison is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.dataset.generate import generate
from bench.dataset.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("minmax", "addition")
RECIPE = """[model]
encoding = "bittoken"
layers = 1
heads = 2
width = 128
[data]
tasks = ["minmax", "addition"]
curriculum = ["minmax", "addition"]
digits = 4
[training]
tokens = {tokens}
batch_tokens = 1024
validate_every = 8
validation_tokens = 1024
save_every = 8
threads = 1
"""
DECLARED = """dataset = "{folder}/data"
recipes = "{folder}"
[[runs]]
name = "multi-{{encoding}}-s1"
recipe = "tiny"
set = ["model.encoding={{encoding}}"]
each.encoding = ["bittoken", "digit"]
"""


def declare(folder: Path, tokens: int) -> Path:
    """A comparison of two runs under `folder`, of so many tokens each; its file."""
    settings = Settings(name="data", tasks=TASKS, size=4, max_digits=4)
    generate(settings, folder / "data")
    (folder / "tiny.toml").write_text(RECIPE.format(tokens=tokens))
    declared = folder / "declared.toml"
    declared.write_text(DECLARED.format(folder=folder))
    return declared


def queue(declared: Path, *arguments: str) -> subprocess.Popen[str]:
    """The queue on a comparison, its words on a pipe; everything lies beside `declared`."""
    folder = declared.parent
    places = ("--out", str(folder / "kept"), "--scratch", str(folder / "scratch"))
    command = (sys.executable, "-m", "experiments.queue", "--declared", str(declared))
    return subprocess.Popen(
        [*command, *places, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def until(declared: Path, run: str, words: str) -> None:
    """Wait until the log of a run says `words`."""
    log = declared.parent / "scratch" / f"{run}.log"
    while not (log.is_file() and words in log.read_text()):
        time.sleep(0.05)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and last words."""
    assert process.stderr is not None
    said = process.stderr.read()
    return process.wait(), said
