"""The lm-evaluation-harness folder: our questions, our scores.

Needs `pip install 'numbench[lm-eval]'`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import open_dataset
from bench.ecosystem.harness_folder import export_harness
from bench.ecosystem.measures import opening
from bench.errors import BadInput
from bench.models.base import Message
from bench.runner.few_shot import examples
from bench.scoring import summarize
from tests.ecosystem import canned

lm_eval = pytest.importorskip("lm_eval", reason="pip install 'numbench[lm-eval]'")

from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402


class Canned(LM):
    """A chat model that looks its answers up by the last question, and remembers what it read."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__()
        self.texts = texts
        self.read: list[list[dict[str, str]]] = []
        self.options: list[dict[str, object]] = []

    tokenizer_name = "none"

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        return json.dumps(chat_history)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        for request in requests:
            self.read.append(json.loads(request.args[0]))
            self.options.append(request.args[1])
        return [self.texts[messages[-1]["content"]] for messages in self.read]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield


def evaluated(folder: Path, model: LM, tasks: list[str], **options: object) -> dict:
    results = lm_eval.simple_evaluate(
        model=model,
        tasks=tasks,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        limit=canned.LIMIT,
        apply_chat_template=True,
        bootstrap_iters=0,
        **options,
    )
    assert results is not None
    return results


def test_scores_are_those_of_our_own_run(tmp_path: Path) -> None:
    group = export_harness(open_dataset("v1"), tmp_path / "folder")
    model = Canned(canned.texts())
    found = evaluated(tmp_path / "folder", model, [group])
    cells = summarize(canned.scored(tmp_path / "run"))
    for task, cell in cells.items():
        figures = found["results"][f"{group}_{task}"]
        assert 100 * figures["log_smape,none"] == pytest.approx(cell.score, abs=1e-9)
        assert 100 * figures["exact_match,none"] == pytest.approx(cell.exact_match, abs=1e-9)
        assert 100 * figures["compliance,none"] == pytest.approx(cell.compliance, abs=1e-9)
    mean = sum(cell.score for cell in cells.values()) / len(cells)
    assert 100 * found["results"][group]["log_smape,none"] == pytest.approx(mean, abs=1e-9)


def test_a_chat_model_reads_what_our_runner_sends(tmp_path: Path) -> None:
    source = open_dataset("v1")
    group = export_harness(source, tmp_path)
    model = Canned(canned.texts())
    evaluated(tmp_path, model, [f"{group}_std"], num_fewshot=2, fewshot_as_multiturn=True)
    shown = examples(source, ["std"], 2)["std"]
    item = source.by_task["std"][0]
    ours = [*opening("std", shown), Message("user", item.prompt)]
    read = [(message["role"], message["content"].rstrip("\n")) for message in model.read[0]]
    assert read == [tuple(message) for message in ours]


def test_generation_is_greedy_long_and_never_cut_at_a_blank_line(tmp_path: Path) -> None:
    group = export_harness(open_dataset("v1"), tmp_path)
    model = Canned(canned.texts())
    evaluated(tmp_path, model, [f"{group}_std"])
    assert model.options[0] == {
        "until": [],
        "do_sample": False,
        "temperature": 0.0,
        "max_gen_toks": 16384,
    }


def test_the_command_runs_the_exported_folder(tmp_path: Path) -> None:
    """`lm_eval run --include_path FOLDER --tasks numbench_v1 --model dummy`, as a user would."""
    folder = tmp_path / "folder"
    numbench = "from bench.cli import main; main()"
    export = [sys.executable, "-c", numbench, "export", "--to", "lm-eval", "--out", str(folder)]
    subprocess.run(export, check=True, capture_output=True, timeout=120)
    command = "-m lm_eval run --tasks numbench_v1 --model dummy --limit 2 --include_path"
    done = subprocess.run(
        [sys.executable, *command.split(), str(folder), "--output_path", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (tmp_path / "out").rglob("results_*.json")
    found = json.loads(path.read_text())
    assert len(found["group_subtasks"]["numbench_v1"]) == 9
    assert found["results"]["numbench_v1_addition"]["compliance,none"] == 0
    assert found["n-samples"]["numbench_v1_addition"] == {"original": 500, "effective": 2}


def test_a_folder_holds_one_dataset(tmp_path: Path) -> None:
    small = generate(Settings(name="small", tasks=("addition",), size=3), tmp_path / "small")
    assert export_harness(small.dataset, tmp_path / "folder") == "numbench_small"
    with pytest.raises(BadInput, match="another dataset"):
        export_harness(open_dataset("v1"), tmp_path / "folder")
