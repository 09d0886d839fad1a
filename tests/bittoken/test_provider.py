"""Small models in this process. What they share with `hf/` models is tested there."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bittoken.checkpoint import save_checkpoint
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.errors import BadInput
from numbench.journal.run_folder import read_run
from numbench.models import Message, describe_model, open_batch, open_model
from numbench.models.base import RequestSettings
from numbench.reporting.build import report
from numbench.runner.execution import run
from numbench.runner.spec import RunSpec
from numbench.tasks.prompts import load_prompt_set
from tests.bittoken import small
from tests.support.local_models import ask, assert_batches_change_no_answer

LIST = ("1.5", "-7", "300")
PROMPTS = load_prompt_set()
QUESTIONS = (
    PROMPTS.format_question("addition", "+", ("1", "2.5")),
    PROMPTS.format_question("sorting", "ascending", LIST),
    PROMPTS.format_question("interval", "interval", ("2", "1", "3")),
    PROMPTS.format_question("mean", "mean", LIST * 3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("models") / "tiny-bittoken"
    save_checkpoint(at, small.network(), {"step": 1})
    return at


def test_an_answer_does_not_depend_on_its_batch(folder: Path) -> None:
    model = open_model(f"checkpoint/{folder}").model
    alone = assert_batches_change_no_answer(model, QUESTIONS)
    assert len({c.text for c in alone}) == len(QUESTIONS)


def test_only_the_last_question_is_read(folder: Path) -> None:
    model = open_model(f"checkpoint/{folder}").model
    (plain,) = ask(model, QUESTIONS[:1], max_tokens=12)
    turns = [
        Message("system", "Be brief."),
        Message("user", QUESTIONS[1]),
        Message("assistant", "{}"),
        Message("user", QUESTIONS[0]),
    ]
    completion = asyncio.run(model.answer(turns, RequestSettings(max_tokens=12)))
    assert (completion.text, completion.usage) == (plain.text, plain.usage)
    usage = completion.usage
    # bos, a number, the operator, a number, eoq
    assert (usage.input, usage.reasoning, usage.source) == (5, 0, "counted")
    assert usage.visible == usage.generated and 1 <= (usage.visible or 0) <= 12
    assert completion.served_model == "tiny-bittoken"
    assert completion.extra["device"] in ("cpu", "cuda:0")


def test_an_invalid_too_long_or_late_question_fails(folder: Path) -> None:
    model: Any = open_model(f"checkpoint/{folder}").model
    long = PROMPTS.format_question("mean", "mean", ["1"] * 600)
    valid, *failed = ask(model, [QUESTIONS[0], "Who are you?", long])
    failed += [*ask(model, QUESTIONS[:1], temperature=0.7), *ask(model, QUESTIONS, timeout=0.0)]
    messages = ["not a question", "context of 1024", "temperature 0", *["timed out"] * 4]
    assert valid.error is None
    for completion, message in zip(failed, messages, strict=True):
        assert completion.error is not None and message in completion.error.message
        assert completion.error.kind == ("run" if message == "temperature 0" else "item")


@pytest.mark.usefixtures("without_figures")
def test_a_run_is_recorded_resumed_scored_and_reported(folder: Path, tmp_path: Path) -> None:
    settings = DatasetSettings(name="d", tasks=("addition", "sorting"), size=5, seed=7, max_bits=8)
    generate(settings, tmp_path / "data")
    name, out = f"checkpoint/{folder}", tmp_path / "run"
    spec = RunSpec(
        name, dataset=tmp_path / "data", out=out, concurrency=4, on_progress=lambda now: None
    )
    done = run(spec)
    assert (done.answered, done.errors) == (10, 0)
    recorded = read_run(out)
    info, responses = recorded.info, recorded.responses.values()
    assert (info.model, info.display, info.reasoning) == (name, "tiny-bittoken", "none")
    assert (info.settings["max_tokens"], info.settings["precision"]) == (64, "float32")
    assert len(str(info.settings["model_sha256"])) == 64
    assert done.generated_tokens == sum(r.usage.generated or 0 for r in responses)
    assert max(int(str(r.extra["batch"])) for r in responses) > 1
    again = run(spec)
    assert (again.completed, again.skipped) == (0, 10)
    report([out], out=tmp_path / "report")
    scores = pq.read_table(tmp_path / "report" / "scores.parquet").to_pylist()
    assert {score["item_id"] for score in scores} == set(recorded.responses)
    assert "tiny-bittoken" in (tmp_path / "report" / "tables" / "tokens.md").read_text()


def test_the_identity_depends_on_the_weights(folder: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "same", small.network(), {"step": 1})
    save_checkpoint(tmp_path / "other", small.network(seed=1), {"step": 1})
    (tmp_path / "same" / "notes.json").write_text("{}")
    same, equal, other = (
        open_model(f"checkpoint/{at}").description.identity["model_sha256"]
        for at in (folder, tmp_path / "same", tmp_path / "other")
    )
    assert same == equal != other


def test_options_without_effect_are_rejected(folder: Path) -> None:
    name = f"checkpoint/{folder}"
    description = describe_model(name)
    assert (description.level, description.route) == ("none", None)
    with pytest.raises(BadInput, match="no reasoning level 'high'; possible: none"):
        open_model(name, "high")
    with pytest.raises(BadInput, match="omit --base-url"):
        run(RunSpec(name, base_url="http://127.0.0.1:1/v1"))
    with pytest.raises(BadInput, match="omit --batch"):
        open_batch(name)
    with pytest.raises(BadInput, match="few-shot"):
        run(RunSpec(name, few_shot=2))


def test_the_error_for_an_incomplete_folder_names_the_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match=r"folder .*nowhere does not exist"):
        open_model(f"checkpoint/{tmp_path}/nowhere")
    with pytest.raises(BadInput, match="unknown model"):
        open_model("checkpoint/")
    with pytest.raises(BadInput, match=rf"^checkpoint/{tmp_path}: .* config.json is missing$"):
        open_model(f"checkpoint/{tmp_path}")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").touch()
    with pytest.raises(BadInput, match=rf"did you mean {tmp_path}/checkpoint\?$"):
        open_model(f"checkpoint/{tmp_path}")
    monkeypatch.setattr("numbench.models.local_inference.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"needs an extra: pip install 'numbench\[local\]'"):
        open_model(f"checkpoint/{tmp_path}")


def test_heavy_packages_are_imported_when_they_are_needed() -> None:
    code = (
        "import sys, numbench.cli, numbench.runner, bittoken.provider, bittoken.cli\n"
        "print([m for m in ('torch', 'safetensors', 'bittoken.network') if m in sys.modules])\n"
        "sys.modules['torch'] = None\nfrom bittoken import BitToken"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert "BitToken needs torch: pip install 'numbench[local]'" in done.stderr
