from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from bench.dataset.store import write_dataset
from bench.errors import BadInput
from bench.journal import read_run
from bench.models import Message, describe_model, open_batch, open_model
from bench.models.base import Settings
from bench.records import Completion
from bench.report import report
from bench.runner import run
from bench.runner.spec import RunSpec
from bench.tasks.items import make_item
from bench.tasks.phrasing import prompts

LACKING = [name for name in ("torch", "safetensors") if find_spec(name) is None]
local = pytest.mark.skipif(
    bool(LACKING), reason=f"{' and '.join(LACKING)} not installed: pip install '.[local]'"
)
SYSTEM = Message("system", "Return one JSON object.")
LIST = ("1.5", "-7", "300")
QUESTIONS = (
    prompts().phrase("addition", "+", ("1", "2.5")),
    prompts().phrase("sorting", "ascending", LIST),
    prompts().phrase("interval", "interval", ("2", "1", "3")),
    prompts().phrase("mean", "mean", LIST * 3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from bench.bittoken.checkpoint import save
    from tests.bittoken import small

    at = tmp_path_factory.mktemp("models") / "tiny-bittoken"
    save(at, small.network(), {"step": 1})
    return at


def ask(
    model: Any, questions: Sequence[str] = QUESTIONS, together: bool = True, **settings: Any
) -> list[Completion]:
    shaped = Settings(**({"temperature": 0.0, "max_tokens": 12} | settings))

    async def one(question: str) -> Completion:
        completion: Completion = await model.answer([SYSTEM, Message("user", question)], shaped)
        return completion

    async def go() -> list[Completion]:
        if together:
            return list(await asyncio.gather(*map(one, questions)))
        return [await one(question) for question in questions]

    return asyncio.run(go())


def says(model: Any, monkeypatch: pytest.MonkeyPatch, *pieces: str | float) -> None:
    """Let `model` generate these tokens, a float as a number token, and then its end."""
    from bench.bittoken.generate import Generated

    lexicon = model._loaded.lexicon
    tokens = [lexicon.number if isinstance(p, float) else lexicon.ids[p][0] for p in pieces]
    values = [p for p in pieces if isinstance(p, float)]
    answer = Generated([*tokens, lexicon.end], values, True)
    monkeypatch.setattr(
        "bench.bittoken.generate.generate", lambda net, lex, asked, *_: [answer] * len(asked)
    )


@local
def test_an_answer_is_the_same_alone_and_in_a_batch(folder: Path) -> None:
    model = open_model(f"checkpoint/{folder}").model
    alone = ask(model, together=False)
    together = ask(model)
    assert {c.extra["batch"] for c in alone} == {1}
    assert {c.extra["batch"] for c in together} == {len(QUESTIONS)}
    assert [(c.text, c.usage, c.finish_reason) for c in alone] == [
        (c.text, c.usage, c.finish_reason) for c in together
    ]
    assert len({c.text for c in alone}) == len(QUESTIONS)


@local
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ((3.5,), '{"answer": 3.5}'),
        (("B",), '{"answer": "B"}'),
        (("[", -7.0, ", ", 1.5, "]"), '{"answer": [-7, 1.5]}'),
        (("[", 1.5), '{"answer": null, "said": "[1.5"}'),
        ((), ""),
    ],
)
def test_answers_are_given_in_the_form_that_is_scored(
    folder: Path, pieces: tuple[str | float, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model(f"checkpoint/{folder}").model
    says(model, monkeypatch, *pieces)
    (completion,) = ask(model, QUESTIONS[:1])
    assert (completion.text, completion.finish_reason) == (text, "stop")
    usage, count = completion.usage, len(pieces) + 1
    # bos, a number, the operator, a number, eoq
    assert (usage.input, usage.reasoning, usage.source) == (5, 0, "counted")
    assert (usage.visible, usage.generated) == (count, count)
    assert completion.served_model == "tiny-bittoken"
    assert completion.extra["device"] in ("cpu", "cuda:0")


@local
def test_an_answer_at_its_limit_is_cut_off_and_does_not_count(folder: Path) -> None:
    model = open_model(f"checkpoint/{folder}").model
    for completion in ask(model, max_tokens=3):
        assert completion.finish_reason == "length"
        assert completion.usage.generated == 3
        assert json.loads(completion.text)["answer"] is None


@local
def test_it_reads_the_last_question_and_nothing_else(folder: Path) -> None:
    model = open_model(f"checkpoint/{folder}").model
    (plain,) = ask(model, QUESTIONS[:1])
    turns = [
        Message("system", "Be brief."),
        Message("user", QUESTIONS[1]),
        Message("assistant", "{}"),
        Message("user", QUESTIONS[0]),
    ]
    said = asyncio.run(model.answer(turns, Settings(max_tokens=12)))
    assert (said.text, said.usage) == (plain.text, plain.usage)


@local
def test_what_is_no_question_or_too_long_fails_alone(folder: Path) -> None:
    model: Any = open_model(f"checkpoint/{folder}").model
    long = prompts().phrase("mean", "mean", ["1"] * 600)
    answered, strange, endless = ask(model, [QUESTIONS[0], "Who are you?", long])
    assert answered.error is None
    for failed, message in ((strange, "not a question"), (endless, "context of 1024")):
        assert failed.error is not None
        assert failed.error.kind == "item"
        assert message in failed.error.message
    (warm,) = ask(model, QUESTIONS[:1], temperature=0.7)
    assert warm.error is not None and warm.error.kind == "run"


@local
def test_a_batch_out_of_time_fails_and_one_out_of_memory_is_halved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from bench.bittoken import generate as module

    model: Any = open_model(f"checkpoint/{folder}").model
    expected = [c.text for c in ask(model)]
    late = ask(model, timeout=0.0)
    assert [c.error.kind for c in late if c.error] == ["item"] * len(QUESTIONS)
    generate = module.generate

    def little(network: Any, lexicon: Any, questions: Any, *others: Any) -> Any:
        if len(questions) > 1:
            raise torch.OutOfMemoryError("too much")
        return generate(network, lexicon, questions, *others)

    monkeypatch.setattr(module, "generate", little)
    assert [c.text for c in ask(model)] == expected


@local
def test_closing_stops_a_batch_under_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = open_model(f"checkpoint/{folder}").model
    begun = asyncio.Event()

    async def go() -> Completion:
        loop = asyncio.get_running_loop()

        def endless(network: Any, lexicon: Any, asked: Any, limits: Any, stopped: Any) -> Any:
            from bench.bittoken.generate import Generated

            loop.call_soon_threadsafe(begun.set)
            # A thread that nobody stops would keep the tests from ending.
            until = time.monotonic() + 60
            while not stopped() and time.monotonic() < until:
                time.sleep(0.001)
            return [Generated([5], [], False)] * len(asked)

        monkeypatch.setattr("bench.bittoken.generate.generate", endless)
        question = Message("user", QUESTIONS[0])
        answer = asyncio.create_task(model.answer([question], Settings(max_tokens=12)))
        await begun.wait()
        await model.close()
        return await answer  # type: ignore[no-any-return]

    stopped = asyncio.run(go())
    assert stopped.error is not None
    assert stopped.error.kind == "transient"


@local
def test_a_run_goes_through_journal_scores_and_report(folder: Path, tmp_path: Path) -> None:
    items = {
        "addition": [make_item("addition", "+", (str(n), "1"), {}) for n in range(1, 6)],
        "sorting": [make_item("sorting", "ascending", (str(n), "0.5"), {}) for n in range(1, 6)],
        "interval": [make_item("interval", "interval", (str(n), "2", "4"), {}) for n in (1, 3, 5)],
    }
    write_dataset(
        tmp_path / "data",
        items,
        name="small",
        generator="test",
        seed=None,
        split="test",
        settings={},
    )
    name = f"checkpoint/{folder}"
    out = tmp_path / "run"
    spec = RunSpec(name, dataset=tmp_path / "data", out=out)
    done = run(spec, concurrency=4, on_progress=lambda now: None)
    assert (done.answered, done.errors) == (13, 0)
    recorded = read_run(out)
    assert recorded.info.display == "tiny-bittoken"
    assert recorded.info.reasoning == "none"
    assert recorded.info.settings["max_tokens"] == 64
    assert len(str(recorded.info.settings["model_sha256"])) == 64
    assert recorded.info.settings["precision"] == "float32"
    responses = recorded.responses.values()
    assert done.generated_tokens == sum(r.usage.generated or 0 for r in responses)
    assert max(int(str(r.extra["batch"])) for r in responses) > 1
    again = run(spec, concurrency=4, on_progress=lambda now: None)
    assert (again.asked, again.skipped) == (0, 13)
    assert msgspec.json.decode((out / "run.json").read_bytes())["model"] == name
    report([out], out=tmp_path / "report", published=False)
    scores = pq.read_table(tmp_path / "report" / "scores.parquet").to_pylist()
    assert {score["item_id"] for score in scores} == set(recorded.responses)
    assert "tiny-bittoken" in (tmp_path / "report" / "tables" / "tokens.md").read_text()


@local
def test_right_answers_score_full_marks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three kinds of answer, as tokens of a model that knows them."""
    from bench.bittoken.generate import Generated
    from bench.bittoken.lexicon import Lexicon

    truths = {
        ("1", "2.5"): (3.5,),
        ("3", "0.1"): ("[", 0.1, ", ", 3.0, "]"),
        ("3", "2", "4"): ("B",),
    }
    items = {
        "addition": [make_item("addition", "+", ("1", "2.5"), {})],
        "sorting": [make_item("sorting", "ascending", ("3", "0.1"), {})],
        "interval": [make_item("interval", "interval", ("3", "2", "4"), {})],
    }
    write_dataset(
        tmp_path / "data",
        items,
        name="small",
        generator="test",
        seed=None,
        split="test",
        settings={},
    )

    def known(network: Any, lexicon: Lexicon, asked: Any, *_: Any) -> list[Generated]:
        encoding = lexicon.vocabulary.encoding
        answers = []
        for question in asked:
            numbers = question.codes[question.tokens == lexicon.number]
            assert encoding is not None
            values = encoding.value(numbers).tolist()
            pieces: Any = next(
                truth for key, truth in truths.items() if [float(k) for k in key] == values
            )
            tokens = [lexicon.number if isinstance(p, float) else lexicon.ids[p][0] for p in pieces]
            found = [p for p in pieces if isinstance(p, float)]
            answers.append(Generated([*tokens, lexicon.end], found, True))
        return answers

    monkeypatch.setattr("bench.bittoken.generate.generate", known)
    spec = RunSpec(f"checkpoint/{folder}", dataset=tmp_path / "data", out=tmp_path / "run")
    run(spec, on_progress=lambda now: None)
    report([tmp_path / "run"], out=tmp_path / "report", published=False)
    scores = pq.read_table(tmp_path / "report" / "scores.parquet").to_pylist()
    assert [(s["status"], s["exact_match"], s["rule"]) for s in scores] == [("ok", True, 1)] * 3


@local
def test_other_weights_do_not_go_on_with_a_run(folder: Path, tmp_path: Path) -> None:
    from bench.bittoken.checkpoint import save
    from tests.bittoken import small

    save(tmp_path / "same", small.network(), {"step": 1})
    save(tmp_path / "other", small.network(seed=1), {"step": 1})
    (tmp_path / "same" / "notes.json").write_text("{}")
    prints = [
        open_model(f"checkpoint/{at}").about.identity["model_sha256"]
        for at in (folder, tmp_path / "same", tmp_path / "other")
    ]
    assert prints[0] == prints[1] != prints[2]


@local
def test_a_released_checkpoint_is_told_from_one_with_another_tokenizer(tmp_path: Path) -> None:
    from tests.bittoken.test_released import written

    written(tmp_path)
    opened = open_model(f"checkpoint/{tmp_path}")
    assert {c.error for c in ask(opened.model)} == {None}
    tokenizer = tmp_path / "tokens" / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + "\n")
    other = open_model(f"checkpoint/{tmp_path}").about.identity
    assert other["model_sha256"] != opened.about.identity["model_sha256"]


@local
def test_only_what_it_can_do_is_asked_of_it(folder: Path) -> None:
    name = f"checkpoint/{folder}"
    about = describe_model(name)
    assert (about.level, about.sdk, about.keys) == ("none", None, ())
    with pytest.raises(BadInput, match="no reasoning level 'high'; possible: none"):
        open_model(name, "high")
    with pytest.raises(BadInput, match="leave out --base-url"):
        open_model(name, None, "http://127.0.0.1:1/v1")
    with pytest.raises(BadInput, match="leave out --batch"):
        open_batch(name)
    with pytest.raises(BadInput, match="few-shot"):
        run(RunSpec(name, few_shot=2), on_progress=lambda now: None)


def test_a_folder_without_a_checkpoint_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no folder .*nowhere"):
        open_model(f"checkpoint/{tmp_path}/nowhere")
    with pytest.raises(BadInput, match="unknown model"):
        open_model("checkpoint/")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(BadInput, match=rf"^checkpoint/{tmp_path}: .* config.json is missing$"):
        open_model(f"checkpoint/{tmp_path}")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").touch()
    with pytest.raises(BadInput, match=rf"the one of this training is {tmp_path}/checkpoint$"):
        open_model(f"checkpoint/{tmp_path}")


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.models.checkpoint.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"needs an extra: pip install 'numbench\[local\]'"):
        open_model(f"checkpoint/{tmp_path}")


def test_nothing_heavy_is_imported_before_a_checkpoint_is_opened() -> None:
    code = (
        "import sys, bench.cli, bench.runner, bench.models.checkpoint\n"
        "print([m for m in ('torch', 'safetensors', 'bench.bittoken.network') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
