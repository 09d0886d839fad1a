"""Train what is declared and not yet done: python -m experiments.queue.

The same command goes on where it was interrupted, however that came about.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from filelock import FileLock, Timeout

from bench.bittoken.training.recipe import Recipe
from bench.dataset.store import Dataset
from bench.errors import BadInput, NumbenchError
from bench.jsonl import read_json
from experiments.command import ending, say
from experiments.declared import COMPARISON, Comparison, Declared, read_comparison
from experiments.kept import CHECKPOINT, RECIPE, RESULTS, differing, keep, read_scores

SCRATCH = Path("results/training")
LOCK, QUEUE_LOCK = ".lock", ".queue"
PATIENCE = 300
"""Seconds that a training of an earlier queue, which was killed, may take to save and end."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Queue:
    """Runs that wait, and the children at work on those that do not."""

    def __init__(
        self, runs: Sequence[Declared], data: Dataset, results: Path, scratch: Path
    ) -> None:
        """data: what is asked, results: where runs are kept, scratch: where they are trained."""
        self._waiting = deque(runs)
        self._data, self._results, self._scratch = data, results, scratch
        self._children: set[Process] = set()
        self.stopping = False
        self.failed: list[str] = []

    async def drive(self, workers: int) -> None:
        """Work on `workers` runs at a time until none waits or `stop` is called."""
        await asyncio.gather(*(self._work() for _ in range(workers)))

    def stop(self) -> None:
        """Let the children save and end; called again, end them at once."""
        if self.stopping:
            for child in self._children:
                child.kill()
        self.stopping = True
        for child in self._children:
            _ask_to_end(child)

    async def _work(self) -> None:
        while self._waiting and not self.stopping:
            run = self._waiting.popleft()
            try:
                await self._one(run)
            except (NumbenchError, OSError) as error:
                self.failed.append(run.name)
                say(f"{run.name}: {error}")

    async def _one(self, run: Declared) -> None:
        scratch = self._scratch / run.name
        await self._wait_until_free(scratch)
        changes = [part for text in run.overrides for part in ("--set", text)]
        train = ["train", "--config", str(run.file), *changes, "--out", str(scratch)]
        say(f"{run.name}: training; see {self._scratch / run.name}.log")
        if not await self._child(run.name, [*train, "--threads", "1"]):
            return
        answers = scratch / f"answers-{self._data.manifest.sha256[:6]}"
        asked = ["--dataset", str(self._data.path), "--tasks", ",".join(run.recipe.data.tasks)]
        model = ["--model", f"checkpoint/{scratch / CHECKPOINT}"]
        if not await self._child(run.name, ["run", *model, *asked, "--out", str(answers)]):
            return
        kept = self._results / run.name
        scores = await asyncio.to_thread(keep, scratch, answers, run.recipe, kept)
        found = [f"{task} {score.headline.value:.1f}" for task, score in scores.tasks.items()]
        say(f"{run.name}: done · {', '.join(found)}")

    async def _wait_until_free(self, folder: Path) -> None:
        """Wait for a training of a queue that was killed: it saves and ends by itself."""
        until = time.monotonic() + PATIENCE
        while _taken(folder) and not self.stopping:
            if time.monotonic() > until:
                raise NumbenchError(f"{folder}: another training runs there; wait for it")
            await asyncio.sleep(0.2)

    async def _child(self, name: str, arguments: Sequence[str]) -> bool:
        """Whether `numbench ARGUMENTS` did all of it; False where it was stopped.

        It speaks into the run's log. NumbenchError with its last words where it failed.
        """
        if self.stopping:
            return False
        path = self._scratch / f"{name}.log"
        # Not a pipe: where the queue is killed, a child must still be able to speak as it ends.
        with path.open("ab") as log:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "experiments.child", *arguments),
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=log,
                # A Ctrl-C is for the queue alone, which then asks its children once.
                start_new_session=True,
                env=os.environ | _ONE_THREAD,
            )
        self._children.add(child)
        if self.stopping:
            _ask_to_end(child)
        code = await child.wait()
        self._children.discard(child)
        if code and not self.stopping:
            said = path.read_text(encoding="utf-8", errors="replace").splitlines()
            raise NumbenchError(f"{path}: {arguments[0]} ended with {code}: {''.join(said[-1:])}")
        return not code and not self.stopping


def _ask_to_end(child: Process) -> None:
    assert child.stdin is not None
    child.stdin.close()


def _taken(folder: Path) -> bool:
    """Whether a training runs in `folder`."""
    if not folder.is_dir():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def chosen(
    comparison: Comparison, only: str, results: Path, scratch: Path, again: bool
) -> tuple[list[Declared], list[str]]:
    """The runs of `only` that are not done, and lines on those declared otherwise than made.

    With `again` the latter are among the former; else they are left as they are. BadInput where no
    run has such a name.
    """
    left, changed = [], []
    wanted = [run for run in comparison.runs if fnmatchcase(run.name, only)]
    if not wanted:
        raise BadInput(f"--only {only!r}: no run has such a name; --list shows what waits")
    for run in wanted:
        kept = _kept_differences(run, comparison, results / run.name)
        if kept == []:
            continue
        begun = _begun_differences(run, scratch / run.name)
        if kept or begun:
            what = "measured" if kept else "begun"
            fields = ", ".join(kept or begun or ())
            changed.append(f"{run.name}: declared otherwise than {what}, in {fields}")
        if again and begun:
            if _taken(scratch / run.name):
                raise BadInput(f"{scratch / run.name}: a training runs there; wait for it")
            shutil.rmtree(scratch / run.name)
        if again or not (kept or begun):
            left.append(run)
    return left, changed


def _kept_differences(run: Declared, comparison: Comparison, folder: Path) -> list[str] | None:
    """Where the run that is kept differs from what is declared; None where none is kept."""
    scores = read_scores(folder)
    if scores is None:
        return None
    data = comparison.dataset.manifest.sha256
    other = ["dataset"] if scores.dataset.sha256 != data else []
    return other + differing(scores.recipe, run.recipe)


def _begun_differences(run: Declared, folder: Path) -> list[str]:
    path = folder / RECIPE
    return differing(read_json(path, Recipe), run.recipe) if path.is_file() else []


async def _attended(queue: Queue, workers: int, minutes: float | None) -> int:
    """Drive the queue with signals and a time limit; the exit code."""
    loop = asyncio.get_running_loop()
    interrupted = False

    def on_signal() -> None:
        nonlocal interrupted
        interrupted = True
        again = "one more Ctrl-C ends at once"
        say(f"stopping: trainings save and end; the same command goes on; {again}")
        queue.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup the end of the terminal is to be ignored.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, on_signal)
    timer = None if minutes is None else loop.call_later(60 * minutes, queue.stop)
    await queue.drive(workers)
    if timer is not None:
        timer.cancel()
    if interrupted:
        return 130
    if queue.stopping:
        say("time is up; the same command goes on")
    return 1 if queue.failed else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.queue", description=__doc__)
    add = parser.add_argument
    add("--only", default="*", metavar="GLOB", help="only runs of such a name")
    add("--workers", type=int, default=1, metavar="N", help="runs at a time, of one thread each")
    add("--minutes", type=float, metavar="M", help="save and end after so long")
    add("--again", action="store_true", help="train anew what is declared otherwise than made")
    add("--list", action="store_true", help="only show what waits")
    add("--declared", type=Path, default=COMPARISON, metavar="FILE", help="default: %(default)s")
    add("--out", type=Path, default=RESULTS, help="where runs are kept (default: %(default)s)")
    add("--scratch", type=Path, default=SCRATCH, help="where they are trained (%(default)s)")
    found = parser.parse_args(arguments)
    if found.workers < 1:
        parser.error("--workers: give at least 1")
    return found


def run_queue(given: argparse.Namespace) -> int:
    """The exit code: 0 all done or time is up, 1 a run failed, 2 declared otherwise, 130."""
    comparison = read_comparison(given.declared)
    places = (given.out, given.scratch)
    if given.list:
        left, changed = chosen(comparison, given.only, *places, again=False)
        _tell(changed, again=False)
        print("\n".join(run.name for run in left))
        return 0
    given.scratch.mkdir(parents=True, exist_ok=True)
    lock = FileLock(given.scratch / QUEUE_LOCK)
    try:
        with lock.acquire(timeout=0):
            left, changed = chosen(comparison, given.only, *places, given.again)
            _tell(changed, given.again)
            queue = Queue(left, comparison.dataset, *places)
            code = asyncio.run(_attended(queue, given.workers, given.minutes))
    except Timeout:
        raise BadInput(f"{given.scratch}: another queue works there") from None
    done = [run.name for run in left if read_scores(given.out / run.name)]
    say(f"{len(done)} of {len(left)} done now" + _failures(queue.failed))
    return code or (2 if changed and not given.again else 0)


def _tell(changed: Sequence[str], again: bool) -> None:
    for line in changed:
        say(line if again else f"{line}; --again trains it anew")


def _failures(names: Sequence[str]) -> str:
    return f"; failed: {', '.join(names)}" if names else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: errors speak to people."""
    given = _arguments(arguments)
    return ending(lambda: run_queue(given))


if __name__ == "__main__":
    sys.exit(main())
