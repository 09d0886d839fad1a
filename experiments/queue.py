"""Train the declared runs that are not complete yet: python -m experiments.queue.

After any interruption, the same command resumes.
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

from bittoken.training.recipe import RECIPE_FILE, Recipe, differing_fields
from bittoken.training.run import CHECKPOINT_FOLDER, LOCK_FILE
from experiments.command_line import print_message, run_command
from experiments.comparison import COMPARISON, Comparison, DeclaredRun, read_comparison
from experiments.results_store import (
    read_logged_recipe,
    read_scores,
    store_log,
    store_run,
)
from numbench.dataset.store import Dataset
from numbench.errors import BadInput, NumbenchError
from numbench.jsonl import read_json

SCRATCH = Path("results/training")
QUEUE_LOCK_FILE = ".queue"
WORKER = "experiments.worker"
"""The module that runs `numbench` as a child process."""

LOCK_TIMEOUT_SECONDS = 300
"""The time that a training of an earlier, killed queue may take to save and exit."""
_SINGLE_THREAD_ENV = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Queue:
    """A queue of runs, and the child processes that work on them."""

    def __init__(
        self, runs: Sequence[DeclaredRun], data: Dataset | None, results: Path, scratch: Path
    ) -> None:
        """data: dataset for evaluation, see `Comparison`.

        results, scratch: folders of stored runs and of trainings.
        """
        self._waiting = deque(runs)
        self._data, self._results, self._scratch = data, results, scratch
        self._children: set[Process] = set()
        self.stopping = False
        self.failed: list[str] = []

    async def run(self, workers: int) -> None:
        """Process `workers` runs at a time until the queue is empty or `stop` is called."""
        await asyncio.gather(*(self._run_worker() for _ in range(workers)))

    def stop(self) -> None:
        """Let the children save and exit; on the second call, kill them."""
        if self.stopping:
            for child in self._children:
                child.kill()
        self.stopping = True
        for child in self._children:
            _request_stop(child)

    async def _run_worker(self) -> None:
        while self._waiting and not self.stopping:
            run = self._waiting.popleft()
            try:
                await self._train_and_store(run)
            except (NumbenchError, OSError) as error:
                self.failed.append(run.name)
                print_message(f"{run.name}: {error}")

    async def _train_and_store(self, run: DeclaredRun) -> None:
        scratch, results = self._scratch / run.name, self._results / run.name
        await self._wait_until_free(scratch)
        overrides = [part for text in run.overrides for part in ("--set", text)]
        train = ["train", "--config", str(run.recipe_file), *overrides, "--out", str(scratch)]
        print_message(f"{run.name}: training; see {self._scratch / run.name}.log")
        if not await self._run_numbench(run.name, [*train, "--threads", "1"]):
            return
        if self._data is None:
            store_log(scratch, run.recipe, results)
            print_message(f"{run.name}: done")
            return
        answers = scratch / f"answers-{self._data.manifest.sha256[:6]}"
        data = ["--dataset", str(self._data.path), "--tasks", ",".join(run.recipe.data.tasks)]
        model = ["--model", f"checkpoint/{scratch / CHECKPOINT_FOLDER}"]
        if not await self._run_numbench(run.name, ["run", *model, *data, "--out", str(answers)]):
            return
        scores = await asyncio.to_thread(store_run, scratch, answers, run.recipe, results)
        headlines = [f"{task} {score.headline.value:.1f}" for task, score in scores.tasks.items()]
        print_message(f"{run.name}: done · {', '.join(headlines)}")

    async def _wait_until_free(self, folder: Path) -> None:
        """Wait until a training of a killed queue has saved and exited."""
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while _is_training(folder) and not self.stopping:
            if time.monotonic() > deadline:
                raise NumbenchError(f"{folder}: another training uses this folder; wait for it")
            await asyncio.sleep(0.2)

    async def _run_numbench(self, name: str, arguments: Sequence[str]) -> bool:
        """Run `numbench ARGUMENTS` and return whether it completed; False if it was stopped.

        Its output goes to the run's log. Raises NumbenchError with the log's last line if it fails.
        """
        if self.stopping:
            return False
        path = self._scratch / f"{name}.log"
        # Not a pipe: if the queue is killed, a child must still be able to write while it exits.
        with path.open("ab") as log:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", WORKER, *arguments),
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=log,
                # Only the queue gets a Ctrl-C; it then stops its children.
                start_new_session=True,
                env=os.environ | _SINGLE_THREAD_ENV,
            )
        self._children.add(child)
        if self.stopping:
            _request_stop(child)
        code = await child.wait()
        self._children.discard(child)
        if code and not self.stopping:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            last_line = "".join(lines[-1:])
            raise NumbenchError(f"{path}: {arguments[0]} exited with code {code}: {last_line}")
        return not code and not self.stopping


def _request_stop(child: Process) -> None:
    assert child.stdin is not None
    child.stdin.close()


def _is_training(folder: Path) -> bool:
    """Return whether a training is running in `folder`."""
    if not folder.is_dir():
        return False
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            return False
    except Timeout:
        return True


def runs_to_train(
    comparison: Comparison, only: str, results: Path, scratch: Path, retrain: bool
) -> tuple[list[DeclaredRun], list[str]]:
    """Return the runs to train, and a message for each run whose declaration has changed.

    only: pattern of names. Changed runs are trained only with `retrain`. Raises BadInput if no run
    matches.
    """
    remaining, changed = [], []
    selected = [run for run in comparison.runs if fnmatchcase(run.name, only)]
    if not selected:
        raise BadInput(f"--only {only!r}: no run matches; --list shows the remaining runs")
    for run in selected:
        stored = _stored_differences(run, comparison, results / run.name)
        if stored == []:
            continue
        unfinished = _unfinished_differences(run, scratch / run.name)
        if stored or unfinished:
            which = "stored run" if stored else "unfinished training"
            fields = ", ".join(stored or unfinished)
            changed.append(f"{run.name}: the {which} differs from the declaration in {fields}")
        if retrain and unfinished:
            if _is_training(scratch / run.name):
                raise BadInput(f"{scratch / run.name}: a training uses this folder; wait for it")
            shutil.rmtree(scratch / run.name)
        if retrain or not (stored or unfinished):
            remaining.append(run)
    return remaining, changed


def _stored_differences(run: DeclaredRun, comparison: Comparison, folder: Path) -> list[str] | None:
    """Return the fields in which a stored run differs from its declaration, None if not stored."""
    if comparison.dataset is None:
        recipe = read_logged_recipe(folder)
        return None if recipe is None else differing_fields(recipe, run.recipe)
    scores = read_scores(folder)
    if scores is None:
        return None
    data = comparison.dataset.manifest.sha256
    dataset_field = ["dataset"] if scores.dataset.sha256 != data else []
    return dataset_field + differing_fields(scores.recipe, run.recipe)


def _unfinished_differences(run: DeclaredRun, folder: Path) -> list[str]:
    path = folder / RECIPE_FILE
    return differing_fields(read_json(path, Recipe), run.recipe) if path.is_file() else []


async def _run_until_signal(queue: Queue, workers: int, minutes: float | None) -> int:
    """Run the queue until it ends, a signal arrives or time is up; return the exit code."""
    loop = asyncio.get_running_loop()
    interrupted = False

    def on_signal() -> None:
        nonlocal interrupted
        interrupted = True
        print_message(
            "stopping: saving all trainings; the same command resumes; "
            "press Ctrl-C again to exit at once"
        )
        queue.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Keep ignoring SIGHUP under nohup.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, on_signal)
    timer = None if minutes is None else loop.call_later(60 * minutes, queue.stop)
    await queue.run(workers)
    if timer is not None:
        timer.cancel()
    if interrupted:
        return 130
    if queue.stopping:
        print_message("time limit reached; the same command resumes")
    return 1 if queue.failed else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.queue", description=__doc__)
    add = parser.add_argument
    add("--only", default="*", metavar="GLOB", help="only runs whose name matches")
    add("--workers", type=int, default=1, metavar="N", help="runs at a time, one thread each")
    add("--minutes", type=float, metavar="M", help="save and exit after this time")
    add("--again", action="store_true", help="retrain runs whose declaration has changed")
    add("--list", action="store_true", help="only print the remaining runs")
    add("--declared", type=Path, default=COMPARISON, metavar="FILE", help="default: %(default)s")
    add("--out", type=Path, help="folder of stored runs (default: that of the declaration)")
    add("--scratch", type=Path, default=SCRATCH, help="folder of trainings (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    return options


def run_queue(options: argparse.Namespace) -> int:
    """Return the exit code.

    0: all done, or time limit reached. 1: a run failed. 2: a declaration has changed. 130:
    interrupted.
    """
    comparison = read_comparison(options.declared)
    results = options.out or comparison.results
    folders = (results, options.scratch)
    if options.list:
        runs, changed = runs_to_train(comparison, options.only, *folders, retrain=False)
        _print_changes(changed, retrain=False)
        print("\n".join(run.name for run in runs))
        return 0
    options.scratch.mkdir(parents=True, exist_ok=True)
    lock = FileLock(options.scratch / QUEUE_LOCK_FILE)
    try:
        with lock.acquire(timeout=0):
            runs, changed = runs_to_train(comparison, options.only, *folders, options.again)
            _print_changes(changed, options.again)
            queue = Queue(runs, comparison.dataset, *folders)
            code = asyncio.run(_run_until_signal(queue, options.workers, options.minutes))
    except Timeout:
        raise BadInput(f"{options.scratch}: another queue uses this folder") from None
    done = [run for run in runs if _stored_differences(run, comparison, results / run.name) == []]
    print_message(f"completed {len(done)} of {len(runs)} runs" + _failures(queue.failed))
    return code or (2 if changed and not options.again else 0)


def _print_changes(changed: Sequence[str], retrain: bool) -> None:
    for message in changed:
        print_message(message if retrain else f"{message}; use --again to retrain it")


def _failures(names: Sequence[str]) -> str:
    return f"; failed: {', '.join(names)}" if names else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _arguments(arguments)
    return run_command(lambda: run_queue(options))


if __name__ == "__main__":
    sys.exit(main())
