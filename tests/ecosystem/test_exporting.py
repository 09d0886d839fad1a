"""`numbench export`: what it writes, and what it says where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.report import runs

WITHOUT = """\
import sys
sys.modules.update({name: None for name in ("inspect_ai", "lm_eval", "datasets")})
from bench.cli import main
main()
"""


def without_libraries(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`numbench` where neither Inspect nor lm-eval nor datasets is installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, timeout=120
    )


def test_inspect_logs_need_inspect_and_the_command_says_so(tmp_path: Path) -> None:
    run = runs.mixed_run(tmp_path)
    done = without_libraries("export", str(run), "--to", "inspect", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr == ("numbench: this needs inspect_ai: pip install 'numbench[inspect]'\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("to", "file"), [("lm-eval", "numbench_v1.yaml"), ("huggingface", "README.md")]
)
def test_datasets_are_exported_without_any_of_the_libraries(
    to: str, file: str, tmp_path: Path
) -> None:
    done = without_libraries("export", "v1", "--to", to, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).is_file()
    assert str(tmp_path) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "inspect"], "name a run folder"),
        (["v1", "v2", "--to", "lm-eval"], "takes one dataset, not 2"),
        (["v7", "--to", "huggingface"], "no dataset 'v7'"),
        (["v1"], "--to"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = without_libraries("export", *arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_help_loads_none_of_the_libraries() -> None:
    code = (
        "import sys; from bench.cli import app\n"
        "try: app(['export', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('inspect_ai', 'datasets', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "huggingface" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
