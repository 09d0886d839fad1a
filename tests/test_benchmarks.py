"""Every benchmark starts by its stated command, `python benchmarks/NAME.py`."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.command_line import finish

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_starts_from_any_folder(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = finish(sys.executable, FOLDER / name, "--help", cwd=tmp_path, env=environment)
    assert done.stdout.startswith("usage:")
