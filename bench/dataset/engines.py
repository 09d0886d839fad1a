"""Who makes the files of a dataset: this process, several, or a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal

from bench.dataset.parts import make
from bench.dataset.settings import Part
from bench.errors import BadInput, NumbenchError
from bench.records import FileEntry

Engine = Literal["local", "ray"]


def make_all(
    parts: Sequence[Part], folder: Path, workers: int, engine: Engine
) -> Iterator[FileEntry]:
    """Make every part in `folder`; yield their entries as they are finished, in any order."""
    if engine == "ray":
        return _on_ray(parts, folder.resolve(), workers)
    if workers == 1 or len(parts) == 1:
        return (make(part, folder) for part in parts)
    return _in_processes(parts, folder, workers)


def _in_processes(parts: Sequence[Part], folder: Path, workers: int) -> Iterator[FileEntry]:
    pool = ProcessPoolExecutor(
        min(workers, len(parts)),
        # Threads of Arrow do not survive a fork.
        mp_context=multiprocessing.get_context("spawn"),
        # An interrupt from the keyboard reaches all processes; this one acts for all.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        jobs = [pool.submit(make, part, folder) for part in parts]
        for job in as_completed(jobs):
            yield job.result()
    except BrokenProcessPool:
        raise NumbenchError(
            f"{folder}: a worker process died; the same command goes on with what is missing"
        ) from None
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _on_ray(parts: Sequence[Part], folder: Path, workers: int) -> Iterator[FileEntry]:
    """On the cluster that RAY_ADDRESS names (`folder` must be shared), else on a local Ray."""
    try:
        import ray
    except ImportError:
        raise BadInput("--engine ray needs Ray: pip install 'numbench[ray]'") from None
    started = not ray.is_initialized()
    if started:
        ray.init(num_cpus=None if _address() else workers, log_to_driver=False)
    remote = ray.remote(make)
    waiting = [remote.remote(part, folder) for part in parts]
    try:
        while waiting:
            done, waiting = ray.wait(waiting)
            yield from ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else error from None
    except ray.exceptions.RayError as error:
        raise NumbenchError(
            f"{folder}: {type(error).__name__}; the same command goes on with what is missing"
        ) from error
    finally:
        if started:
            ray.shutdown()


def _address() -> str | None:
    return os.environ.get("RAY_ADDRESS")
