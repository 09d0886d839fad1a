"""The commands of Inspect and lm-evaluation-harness, as users start them.

The tests in `tests/ecosystem` cover the same tasks in this process.
"""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from numbench.core.installation import PACKAGE
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


@pytest.fixture
def tokenizer() -> dict[str, str]:
    """The environment in which Inspect's mock model finds a tokenizer to count tokens with.

    LiteLLM contains a copy of it.
    """
    litellm = find_spec("litellm")
    assert litellm is not None and litellm.origin is not None
    tokenizers = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
    return {"TIKTOKEN_CACHE_DIR": str(tokenizers)}


@pytest.mark.parametrize("installed", [False, True], ids=["checkout", "installed"])
def test_inspect_finds_the_task_by_its_name(
    tmp_path: Path, installed: bool, tokenizer: dict[str, str]
) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="pip install 'numbench[inspect]'")
    # Inspect adds the package to the names of tasks in site-packages, but not of other code.
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "numbench").symlink_to(PACKAGE, target_is_directory=True)
    environment = dict(tokenizer)
    if installed:
        environment["PYTHONPATH"] = str(packages)
    arguments = "-T tasks=addition,mean -T limit=2 --display plain --log-dir logs"
    run_module(
        tmp_path, f"inspect_ai eval numbench/v1 --model mockllm/model {arguments}", **environment
    )
    (path,) = (tmp_path / "logs").glob("*.eval")
    result = log.read_eval_log(str(path))
    assert result.eval.task_registry_name == "numbench/v1"
    metrics = [scorer.metrics[0].name for scorer in result.eval.scorers]
    assert metrics == ["numbench/by_task"] * 3
    assert (result.results.total_samples, result.status) == (4, "success")
    assert {"addition", "mean", "all"} <= result.results.scores[1].metrics.keys()


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
