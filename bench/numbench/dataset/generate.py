"""Generation of datasets: all files and the manifest in a partial folder, which is then renamed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import pyarrow as pa

from numbench.dataset.settings import (
    MAX_SHARD_ROWS,
    DatasetSettings,
    ShardFile,
    check_settings,
    matches_manifest,
    plan_shard_files,
)
from numbench.dataset.shard_files import write_shard_file
from numbench.dataset.store import (
    MANIFEST,
    RELEASED_DATASETS,
    Dataset,
    released_dataset,
    write_manifest,
)
from numbench.errors import BadInput, NumbenchError
from numbench.records import FileEntry

Engine = Literal["local", "ray"]


class FileProgress(NamedTuple):
    """Progress after a finished file.

    rows_per_second: the rate of this call. remaining_seconds: the time for the rest at that rate.
    """

    entry: FileEntry
    finished_files: int
    total_files: int
    rows_per_second: float
    remaining_seconds: float


def generate(
    settings: DatasetSettings = DatasetSettings(),  # noqa: B008 - immutable
    out: Path | None = None,
    workers: int = 1,
    engine: Engine = "local",
    on_file: Callable[[FileProgress], None] = lambda _: None,
    shard_rows: int = MAX_SHARD_ROWS,
) -> Dataset:
    """Write the dataset of these settings to `out` (default: datasets/NAME) and return it.

    Every row depends only on the settings. The folder has files when all are complete. Raises
    BadInput for invalid settings, for a released name with other settings or other items, and if
    `out` holds another dataset or other files; NumbenchError if the disk or a worker fails.
    """
    check_settings(settings)
    released = settings.name in RELEASED_DATASETS and released_dataset(settings.name).manifest
    if released and not matches_manifest(released, settings):
        raise BadInput(
            f"--name {settings.name}: the settings are not those of the released dataset "
            f"{settings.name}; choose another --name"
        )
    if workers < 1:
        raise BadInput(f"--workers {workers}: it must be at least 1")
    folder = out or Path("datasets") / settings.name
    if (folder / MANIFEST).exists():
        return _verified(Dataset(folder), settings)
    files = plan_shard_files(settings, shard_rows)
    with _partial_folder(folder) as partial:
        entries: dict[str, FileEntry] = {}
        start, rows = time.monotonic(), 0
        for entry in write_shard_files(files, partial, workers, engine):
            entries[entry.file] = entry
            rows += entry.items
            rate = rows / max(time.monotonic() - start, 1e-9)
            remaining = (sum(file.rows for file in files) - rows) / rate
            on_file(FileProgress(entry, len(entries), len(files), rate, remaining))
        in_order = [entries[file.file] for file in files]
        dataset = write_manifest(partial, in_order, **settings.manifest_fields())
        if released and dataset.manifest.sha256 != released.sha256:
            raise BadInput(
                f"the files differ from those of the released {settings.name}; "
                "choose another --name"
            )
    return Dataset(folder)


@contextmanager
def _partial_folder(folder: Path) -> Iterator[Path]:
    """Return an empty folder whose content becomes that of `folder` at the end.

    After an error it is removed. Raises BadInput if `folder` holds other files, NumbenchError if
    the disk fails.
    """
    # An existing folder may be a mount or the current folder, which cannot be replaced.
    is_existing, prefix = folder.exists(), f".{folder.name}.partial-"
    if is_existing and any(not path.name.startswith(prefix) for path in folder.iterdir()):
        raise BadInput(f"{folder} holds other files; choose another --out")
    parent = folder if is_existing else folder.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as temporary:
            partial = Path(temporary, "dataset")
            partial.mkdir()
            yield partial
            if is_existing:
                for path in sorted(partial.iterdir(), key=lambda path: path.name == MANIFEST):
                    path.rename(folder / path.name)
            else:
                partial.rename(folder)
    except OSError as error:
        reason = error.strerror or error
        raise NumbenchError(f"{error.filename or folder}: {reason}; no dataset written") from error


def _verified(dataset: Dataset, settings: DatasetSettings) -> Dataset:
    """Return an existing dataset.

    Raises BadInput if it has other settings, or a file of it has changed.
    """
    manifest = dataset.manifest
    if not matches_manifest(manifest, settings):
        raise BadInput(
            f"{dataset.path} holds another dataset ({manifest.name}, seed {manifest.seed}, "
            f"{manifest.split}); choose another --out, or remove the folder"
        )
    for entry in manifest.files:
        dataset.check_file(entry)
    return dataset


def write_shard_files(
    shard_files: Sequence[ShardFile], folder: Path, workers: int, engine: Engine
) -> Iterator[FileEntry]:
    """Write all files into `folder`; yield their entries as they finish, in any order."""
    if engine == "ray":
        return _on_ray(shard_files, folder.resolve(), workers)
    if workers == 1 or len(shard_files) == 1:
        return (write_shard_file(file, folder) for file in shard_files)
    return _in_processes(shard_files, folder, workers)


def _in_processes(
    shard_files: Sequence[ShardFile], folder: Path, workers: int
) -> Iterator[FileEntry]:
    pool = ProcessPoolExecutor(
        min(workers, len(shard_files)),
        # Threads of Arrow do not survive a fork.
        mp_context=multiprocessing.get_context("spawn"),
        # A keyboard interrupt reaches all processes; the main process handles it.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        jobs = [pool.submit(_write_in_worker, file, folder) for file in shard_files]
        for job in as_completed(jobs):
            yield job.result()
    except BrokenProcessPool:
        raise NumbenchError(f"{folder}: a worker process died; no dataset written") from None
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _write_in_worker(shard_file: ShardFile, folder: Path) -> FileEntry:
    """Write one file in a worker process, on one thread: the other workers use the other cores."""
    pa.set_cpu_count(1)
    return write_shard_file(shard_file, folder)


def _on_ray(shard_files: Sequence[ShardFile], folder: Path, workers: int) -> Iterator[FileEntry]:
    """Use the cluster at RAY_ADDRESS (`folder` must be shared), otherwise a local Ray."""
    try:
        import ray
    except ImportError:
        raise BadInput("--engine ray needs Ray: pip install 'numbench[ray]'") from None
    started = not ray.is_initialized()
    if started:
        cluster = os.environ.get("RAY_ADDRESS")
        ray.init(num_cpus=None if cluster else workers, log_to_driver=False)
    remote = ray.remote(_write_in_worker)
    waiting = [remote.remote(file, folder) for file in shard_files]
    try:
        while waiting:
            done, waiting = ray.wait(waiting)
            yield from ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else error from None
    except ray.exceptions.RayError as error:
        raise NumbenchError(f"{folder}: {type(error).__name__}; no dataset written") from error
    finally:
        if started:
            ray.shutdown()
