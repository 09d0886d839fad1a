"""The commands of lm-evaluation-harness, as users start them.

The tests in `tests/ecosystem` cover the same tasks in this process, and those of Inspect, whose
command `tests/test_distribution.py` starts.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.ecosystem.lm_eval_harness import export_lm_eval
from numbench.tasks import PAPER_TASKS
from tests.support.command_line import finish

pytestmark = pytest.mark.heavy


def run_module(folder: Path, command: str, **environment: str) -> str:
    """Run `python -m COMMAND` in a folder; return its output."""
    module = (sys.executable, "-m", *command.split())
    return finish(*module, cwd=folder, env=os.environ | environment).stdout


def test_lm_eval_validates_and_runs_the_exported_folder(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval", reason="pip install 'numbench[lm-eval]'")
    settings = DatasetSettings(name="small", tasks=tuple(PAPER_TASKS), size=3)
    export_lm_eval(generate(settings, tmp_path / "small"), tmp_path / "folder")
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    output = run_module(
        tmp_path, "lm_eval validate --tasks numbench_small --include_path folder", **offline
    )
    assert "All tasks found and valid" in output
    run_module(
        tmp_path,
        "lm_eval run --tasks numbench_small --model dummy --limit 2 "
        "--include_path folder --output_path out",
        **offline,
    )
    (path,) = (tmp_path / "out").rglob("results_*.json")
    results = json.loads(path.read_text())
    assert len(results["group_subtasks"]["numbench_small"]) == 9
    assert results["results"]["numbench_small_addition"]["compliance,none"] == 0
    assert results["n-samples"]["numbench_small_addition"] == {"original": 3, "effective": 2}
