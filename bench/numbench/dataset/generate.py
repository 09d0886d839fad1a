"""Generation of datasets: write the files that are missing, then the manifest."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
from filelock import FileLock, Timeout

from numbench import jsonl
from numbench.dataset.settings import (
    GENERATOR_VERSION,
    MAX_SHARD_ROWS,
    DatasetSettings,
    ShardFile,
    check_settings,
    matches_manifest,
    plan_shard_files,
)
from numbench.dataset.shard_files import RESUME_FOLDER, write_shard_file
from numbench.dataset.store import (
    MANIFEST,
    RELEASED_DATASETS,
    Dataset,
    dataset_hash,
    released_dataset,
    sha256_of,
    write_manifest,
)
from numbench.errors import BadInput, NumbenchError
from numbench.records import FileEntry

Engine = Literal["local", "ray"]


class GenerationResult(NamedTuple):
    """A dataset. unchanged: it existed already, with every file as in its manifest."""

    dataset: Dataset
    unchanged: bool


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
) -> GenerationResult:
    """Write the dataset of these settings to `out` (default: datasets/NAME) and return it.

    Every row depends only on the settings. A repeated call resumes an interrupted one; the manifest
    is written last. Raises BadInput for invalid settings, for a released name with other settings
    or other items, and if `out` holds another dataset or other files; NumbenchError if the disk or
    a worker fails.
    """
    check_settings(settings)
    _check_released_settings(settings)
    if workers < 1:
        raise BadInput(f"--workers {workers}: it must be at least 1")
    folder = out or Path("datasets") / settings.name
    shard_files = plan_shard_files(settings, shard_rows)
    try:
        entries = _finished_files(folder, settings, shard_files)
        if entries is None:
            return GenerationResult(Dataset(folder), unchanged=True)
        with FileLock(folder / RESUME_FOLDER / "lock", timeout=0):
            missing = [file for file in shard_files if file.file not in entries]
            for progress in _write_missing(missing, folder, workers, engine, len(shard_files)):
                entries[progress.entry.file] = progress.entry
                on_file(progress)
            dataset = _finish(folder, settings, [entries[file.file] for file in shard_files])
        return GenerationResult(dataset, unchanged=False)
    except Timeout:
        raise BadInput(f"{folder}: another process is generating this dataset") from None
    except OSError as error:
        raise NumbenchError(
            f"{error.filename or folder}: {error.strerror or error}; finished files are saved, "
            "rerun the same command to resume"
        ) from error


def _check_released_settings(settings: DatasetSettings) -> None:
    """Raise BadInput if the name is that of a released dataset with other settings."""
    if settings.name not in RELEASED_DATASETS:
        return
    manifest = released_dataset(settings.name).manifest
    if not matches_manifest(manifest, settings):
        released = ", ".join(f"{key} {value}" for key, value in manifest.settings.items())
        details = (
            f"seed {manifest.seed}, split {manifest.split}, {released}, the "
            f"{len(manifest.files)} tasks of the paper"
            if released
            else "the paper's own questions, which are not generated"
        )
        raise BadInput(
            f"--name {settings.name}: this is the released dataset ({details}); "
            "choose another --name for other settings"
        )


def _write_missing(
    missing: Sequence[ShardFile], folder: Path, workers: int, engine: Engine, total_files: int
) -> Iterator[FileProgress]:
    """Write the missing files; yield the progress after each."""
    total_rows, finished_rows = sum(file.rows for file in missing), 0
    finished_files = total_files - len(missing)
    start = time.monotonic()
    for entry in write_shard_files(missing, folder, workers, engine):
        finished_files += 1
        finished_rows += entry.items
        rate = finished_rows / max(time.monotonic() - start, 1e-9)
        remaining_seconds = (total_rows - finished_rows) / rate
        yield FileProgress(entry, finished_files, total_files, rate, remaining_seconds)


def _finished_files(
    folder: Path, settings: DatasetSettings, shard_files: list[ShardFile]
) -> dict[str, FileEntry] | None:
    """Return the entries of files that are finished, or None if the whole dataset is.

    Creates the folder with a record of the settings, so that another dataset cannot be resumed
    in it.
    """
    if (folder / MANIFEST).exists():
        _verify(Dataset(folder), settings)
        return None
    record = folder / RESUME_FOLDER / "settings.json"
    current = [*settings[:1], list(settings.tasks), *settings[2:], GENERATOR_VERSION]
    current.append([file.file for file in shard_files])
    if record.exists():
        if jsonl.read_json(record, list) != current:
            raise BadInput(
                f"{folder} holds an unfinished dataset with other settings; choose another --out, "
                "or remove the folder"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} holds other files; choose another --out")
    else:
        jsonl.write_json(record, current)
    return {file.file: entry for file in shard_files if (entry := _finished_entry(folder, file))}


def _verify(dataset: Dataset, settings: DatasetSettings) -> None:
    """Raise BadInput if a complete dataset has other settings, or a file of it has changed."""
    manifest = dataset.manifest
    if not matches_manifest(manifest, settings):
        raise BadInput(
            f"{dataset.path} holds another dataset ({manifest.name}, seed {manifest.seed}, "
            f"{manifest.split}); choose another --out, or remove the folder"
        )
    for entry in manifest.files:
        path = dataset.path / entry.file
        if not path.is_file() or sha256_of(path) != entry.sha256:
            raise BadInput(
                f"{path} is missing or differs from the manifest; remove {dataset.path} "
                "and generate it again"
            )


def _finished_entry(folder: Path, shard_file: ShardFile) -> FileEntry | None:
    """Return the entry of a file that an earlier call finished; None if it has changed since."""
    record = folder / RESUME_FOLDER / f"{shard_file.file}.json"
    path = folder / shard_file.file
    if not record.exists() or not path.exists():
        return None
    entry = jsonl.read_json(record, FileEntry)
    return entry if sha256_of(path) == entry.sha256 else None


def _finish(folder: Path, settings: DatasetSettings, entries: list[FileEntry]) -> Dataset:
    """Write the manifest and remove RESUME_FOLDER.

    Raises BadInput if the dataset has a released name and other items.
    """
    released_hash = RELEASED_DATASETS.get(settings.name)
    if released_hash is not None and dataset_hash(entries) != released_hash:
        raise BadInput(
            f"{folder}: the files differ from those of the released {settings.name}; "
            "choose another --name"
        )
    dataset = write_manifest(
        folder,
        entries,
        name=settings.name,
        generator=GENERATOR_VERSION,
        seed=settings.seed,
        split=settings.split,
        settings=settings.manifest_settings(),
    )
    shutil.rmtree(folder / RESUME_FOLDER)
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
        raise NumbenchError(
            f"{folder}: a worker process died; rerun the same command to resume"
        ) from None
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
        raise NumbenchError(
            f"{folder}: {type(error).__name__}; rerun the same command to resume"
        ) from error
    finally:
        if started:
            ray.shutdown()
