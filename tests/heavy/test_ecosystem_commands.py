"""The commands of Inspect and lm-evaluation-harness, as users start them.

The tests in `tests/ecosystem` cover the same tasks in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.ecosystem.lm_eval_harness import export_lm_eval
from numbench.journal import read_run
from numbench.resources import PACKAGE
from numbench.scoring import score_run, summarize
from numbench.tasks import PAPER_TASKS
from tests.ecosystem import canned
from tests.ecosystem.range_server import serve_folder
from tests.report.browser import chromium, needs_browser

pytestmark = pytest.mark.heavy


def run_module(folder: Path, command: str, **environment: str) -> str:
    """Run `python -m COMMAND` in a folder; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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


def test_inspect_lists_the_task() -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")
    (task,) = json.loads(run_module(PACKAGE.parent, "inspect_ai list tasks numbench --json"))
    assert (task["file"], task["name"]) == ("numbench/ecosystem/inspect_task.py", "numbench/v1")


def test_inspect_evaluates_with_epochs_a_limit_and_its_cache(
    tmp_path: Path, tokenizer: dict[str, str]
) -> None:
    """The second evaluation takes every answer of every epoch from the cache."""
    log = pytest.importorskip("inspect_ai.log", reason="pip install 'numbench[inspect]'")
    environment = tokenizer | {"INSPECT_CACHE_DIR": str(tmp_path / "cache")}
    command = (
        "inspect_ai eval numbench/v1 --model mockllm/model -T limit=5 --epochs 2 --limit 18 "
        "--cache 1D --display plain --log-dir"
    )
    for folder, cache in (("first", "write"), ("second", "read")):
        run_module(tmp_path, f"{command} {folder}", **environment)
        (path,) = (tmp_path / folder).glob("*.eval")
        result = log.read_eval_log(str(path))
        assert (result.status, len(result.samples)) == ("success", 36)
        assert {sample.epoch for sample in result.samples} == {1, 2}
        calls = [
            event.cache
            for sample in result.samples
            for event in sample.events
            if event.event == "model"
        ]
        assert calls == [cache] * 36
        run_module(tmp_path, f"numbench import {folder} --out {folder}-runs")
        (run_folder,) = (tmp_path / f"{folder}-runs").iterdir()
        run = read_run(run_folder)
        assert (run.info.limit, run.info.samples, len(run.responses)) == (2, 2, 36)


@needs_browser
def test_an_exported_run_opens_in_the_viewer_of_inspect(tmp_path: Path) -> None:
    """The viewer reads parts of the log, as from a web host."""
    pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")
    dataset = open_dataset("v1")
    run = canned.write_canned_run(tmp_path / "runs" / "measured", dataset)
    scores = summarize(score_run(run))
    run_module(tmp_path, "numbench export --to inspect --out logs runs")
    run_module(tmp_path, "inspect_ai view bundle --log-dir logs --output-dir site")
    item = dataset.by_task["addition"][2]
    errors: list[str] = []
    requests: list[str] = []
    with serve_folder(tmp_path / "site") as (url, parts), chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        for text in ("numbench/v1", "mockllm/model", "v1 — 54 samples", item.id):
            page.get_by_text(text, exact=True).first.wait_for()
        columns, values = (
            page.locator("tr", has_text=text).first.inner_text().split()
            for text in ("all_stderr", "log_smape")
        )
        shown = dict(zip(columns, values, strict=True))
        assert shown["Scorer"] == "log_smape"
        assert float(shown["minmax"]) == pytest.approx(scores["minmax"].score / 100, abs=5e-4)
        page.get_by_text(item.id, exact=True).first.click()
        page.get_by_text(item.prompt).first.wait_for()
    assert errors == []
    assert any(name.endswith(".eval") for name in parts)
    assert [one for one in requests if not one.startswith((url, "data:", "blob:"))] == []


def test_lm_eval_validates_and_runs_the_exported_folder(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval", reason="pip install 'numbench[lm-eval]'")
    settings = DatasetSettings(name="small", tasks=tuple(PAPER_TASKS), size=3)
    export_lm_eval(generate(settings, tmp_path / "small").dataset, tmp_path / "folder")
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
