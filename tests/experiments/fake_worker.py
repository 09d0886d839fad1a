"""A fake of `experiments.worker` without torch: it trains by waiting and answers at once.

`train` locks its folder, writes the recipe, appends "started" or "resumed" to its log on stderr,
and waits for the file `finish` next to the declaration. SIGTERM, which it also sends itself if the
queue dies, saves a state and exits with 130. A folder that is a file makes it fail.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from filelock import FileLock

from experiments.worker import stop_with_parent


def train(folder: Path, finish: Path) -> int:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    stop_with_parent()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        print("resumed" if (folder / "saved").exists() else "started", file=sys.stderr, flush=True)
        while not (stopped or finish.exists()):
            time.sleep(0.01)
        (folder / "saved").write_text("state")
    return 130 if stopped else 0


def main(command: str, *arguments: str) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    out = Path(options["--out"])
    if command == "train":
        return train(out, Path(options["--config"]).with_name("finish"))
    out.mkdir(parents=True, exist_ok=True)
    return 0


sys.exit(main(*sys.argv[1:]))
