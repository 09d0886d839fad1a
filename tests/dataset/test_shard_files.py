"""Large datasets: workers, order and interruptions do not change their content."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings, plan_shard_files
from numbench.errors import BadInput, NumbenchError

pytestmark = pytest.mark.slow

LARGE = DatasetSettings("large", ("multiplication", "std"), "train", 30_000, 3)
ROWS = 11_000


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    generate(LARGE, folder, shard_rows=ROWS)
    return contents(folder)


def test_the_plan_covers_the_size_in_even_files() -> None:
    parts = plan_shard_files(LARGE, ROWS)
    assert [part.rows for part in parts] == [10_000] * 6
    assert parts[1].file == "multiplication-00001-of-00003.jsonl"
    assert [part.rows for part in plan_shard_files(LARGE._replace(size=10), 4)[:3]] == [3, 3, 4]


def test_workers_change_nothing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    generate(LARGE, tmp_path / "d", workers=3, shard_rows=ROWS)
    assert contents(tmp_path / "d") == whole


def test_row_groups_have_one_size(tmp_path: Path) -> None:
    settings = DatasetSettings("p", ("addition",), "train", 300_000, 8, format="parquet")
    generate(settings, tmp_path)
    groups = pq.ParquetFile(tmp_path / "addition.parquet").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sizes == [131_072, 131_072, 37_856]


GENERATE = """
import sys
from pathlib import Path
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.errors import NumbenchError
if __name__ == "__main__":
    settings = DatasetSettings("large", ("multiplication", "std"), "train", 30_000, 3)
    try:
        generate(settings, Path(sys.argv[1]), workers=int(sys.argv[2]), shard_rows=11_000)
    except NumbenchError as error:
        print(error)
        sys.exit(1)
"""


def start(tmp_path: Path, folder: Path, workers: int, **options: object) -> subprocess.Popen[str]:
    script = tmp_path / "generate_large.py"
    script.write_text(GENERATE)
    command = [sys.executable, str(script), str(folder), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # type: ignore


def wait_for_a_file(folder: Path) -> None:
    """Wait until a file of the dataset has content."""
    for _ in range(25_000):
        if any(path.stat().st_size for path in folder.parent.glob(f".{folder.name}.*/*/*.jsonl")):
            return
        time.sleep(0.01)
    raise AssertionError("no file was started")


def test_a_killed_worker_ends_the_command(tmp_path: Path, whole: dict[str, bytes]) -> None:
    folder = tmp_path / "d"
    process = start(tmp_path, folder, 2)
    wait_for_a_file(folder)
    for worker in children(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 1
    assert "a worker process died; no dataset written" in output
    assert not folder.exists()
    generate(LARGE, folder, workers=2, shard_rows=ROWS)
    assert contents(folder) == whole


def children(parent: int) -> list[int]:
    """Return the worker processes of a process, recognized by their command lines."""
    workers = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            arguments = (stat.parent / "cmdline").read_text()
            if int(fields[1]) == parent and "spawn_main" in arguments:
                workers.append(int(stat.parent.name))
    assert workers
    return workers


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "d"
    full = start(
        tmp_path,
        folder,
        1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    output, _ = full.communicate(timeout=250)
    assert full.returncode == 1 and len(output.splitlines()) == 1
    assert "no dataset written" in output
    assert not list(folder.parent.iterdir())


def test_a_local_ray_makes_the_same_files(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'numbench[ray]'")
    generate(LARGE, tmp_path / "d", workers=2, engine="ray", shard_rows=ROWS)
    assert contents(tmp_path / "d") == whole
    assert not ray.is_initialized()
    ray.init(num_cpus=1, log_to_driver=False)
    with pytest.raises((BadInput, NumbenchError), match="exponentiation has only about"):
        settings = DatasetSettings("e", ("exponentiation",), "val", 500_000, max_digits=3)
        generate(settings, tmp_path / "e", engine="ray")

    def crash(references: object) -> None:
        raise ray.exceptions.WorkerCrashedError

    monkeypatch.setattr(ray, "wait", crash)
    with pytest.raises(NumbenchError, match="WorkerCrashedError; no dataset written"):
        generate(LARGE, tmp_path / "e", engine="ray")
    assert ray.is_initialized() and not (tmp_path / "e").exists()
    ray.shutdown()
