"""Hugging Face models in this process."""

import asyncio
import json
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pytest

from numbench.errors import BadInput
from numbench.models import Message, open_model, opening
from numbench.models.base import RequestSettings
from numbench.records import Completion
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from tests.models import tiny_transformers
from tests.support.case_tables import each_row
from tests.support.local_models import SYSTEM, ask, assert_batches_change_no_answer

pytestmark = pytest.mark.slow

LACKING = [name for name in ("torch", "transformers") if find_spec(name) is None]
local = pytest.mark.skipif(
    bool(LACKING), reason=f"{' and '.join(LACKING)} not installed: pip install '.[local]'"
)
QUESTIONS = (
    "What is 1 + 2?",
    "What is 345.67 - 89.1?",
    "Which of 12, 13.5, 0.7 is the minimum?",
    "What is 345.67 - 89.1? What is 1 + 2? Which is the minimum?",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root, turns = tmp_path_factory.mktemp("models"), tiny_transformers.PLAIN_TURNS
    templates = {"chat": turns, "switch": turns + tiny_transformers.SWITCH}
    templates |= {"opened": turns + tiny_transformers.OPENED}
    templates |= {"no_system": tiny_transformers.NO_SYSTEM}
    return {
        "llama": tiny_transformers.save(root / "llama"),
        "gpt2": tiny_transformers.save(root / "gpt2", kind="gpt2"),
    } | {name: tiny_transformers.save(root / name, text) for name, text in templates.items()}


def opened(name: str) -> Any:
    """Return a model that a test may change."""
    return open_model(name).model


@pytest.fixture(autouse=True)
def forget_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test use a model that another one has changed."""
    monkeypatch.setattr(opening, "_open_models", WeakValueDictionary())


def says(model: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `model` generate `text`, its end token and padding for every prompt."""
    import torch

    new = torch.tensor([model._tokenizer(text)["input_ids"] + [model._tokenizer.eos_token_id] * 3])

    def generate(input_ids: Any, **_: Any) -> Any:
        return torch.cat([input_ids, new.expand(len(input_ids), -1)], dim=1)

    monkeypatch.setattr(model._network, "generate", generate)


@local
@pytest.mark.parametrize("kind", ["llama", "gpt2", "chat"])
def test_an_answer_does_not_depend_on_its_batch(folders: dict[str, Path], kind: str) -> None:
    alone = assert_batches_change_no_answer(open_model(f"hf/{folders[kind]}").model, QUESTIONS)
    assert len({c.text for c in alone}) > 1


@local
def test_tokens_and_text_equal_those_of_greedy_decoding(folders: dict[str, Path]) -> None:
    """The reference recomputes each step from the whole sequence, without cache and padding."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folders["llama"])
    network = AutoModelForCausalLM.from_pretrained(folders["llama"])
    completions = ask(open_model(f"hf/{folders['llama']}").model, QUESTIONS)
    for question, completion in zip(QUESTIONS, completions, strict=True):
        prompt = tokenizer(f"{SYSTEM.content}\n\n{question}\n")["input_ids"]
        tokens = list(prompt)
        while len(tokens) < len(prompt) + 40 and tokenizer.eos_token_id not in tokens:
            with torch.no_grad():
                tokens.append(int(network(torch.tensor([tokens])).logits[0, -1].argmax()))
        new = tokens[len(prompt) :]
        assert completion.text == tokenizer.decode(new, skip_special_tokens=True)
        usage = completion.usage
        assert (usage.input, usage.generated, usage.source) == (len(prompt), len(new), "counted")
        assert (usage.reasoning, usage.visible) == (0, len(new))
        ended = new[-1] == tokenizer.eos_token_id
        assert completion.finish_reason == ("stop" if ended else "length")


@local
@each_row(__file__, "split_reasoning")
def test_reasoning_is_split_from_the_answer_and_counted(
    folders: dict[str, Path],
    kind: str,
    reasoning: str,
    answer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = opened(f"hf/{folders[kind]}")
    says(model, reasoning + answer, monkeypatch)
    (completion,) = ask(model, QUESTIONS[:1], max_tokens=400)
    assert completion.text == '{"answer": 3}'
    assert completion.reasoning_text == ("1 + 2 = 3" if reasoning else None)
    assert completion.finish_reason == "stop"
    reasoning_tokens = len(model._tokenizer(reasoning)["input_ids"])
    visible = len(model._tokenizer(answer)["input_ids"]) + 1
    usage = completion.usage
    assert (usage.reasoning, usage.visible) == (reasoning_tokens, visible)
    assert usage.generated == reasoning_tokens + visible


@local
def test_truncated_reasoning_has_an_empty_answer(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(f"hf/{folders['opened']}")
    reasoning = "so 1 + 2 = 3"
    tokens = model._tokenizer(reasoning)["input_ids"]
    says(model, reasoning, monkeypatch)
    monkeypatch.setattr(model, "end_token_ids", frozenset())
    (completion,) = ask(model, QUESTIONS[:1], max_tokens=len(tokens) + 3)
    assert (completion.text, completion.finish_reason) == ("", "length")
    assert (completion.usage.visible, completion.usage.reasoning) == (0, len(tokens) + 3)


@local
def test_sampling_and_penalties_of_the_folder_are_ignored(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """Its end tokens are kept: if every token is one, an answer has one token."""
    folder = tiny_transformers.save(tmp_path / "model")
    config = {"do_sample": True, "temperature": 3.0, "repetition_penalty": 5.0, "max_length": 30}
    (folder / "generation_config.json").write_text(json.dumps(config))
    plain = ask(open_model(f"hf/{folders['llama']}").model, QUESTIONS)
    assert [c.text for c in ask(open_model(f"hf/{folder}").model, QUESTIONS)] == [
        c.text for c in plain
    ]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [*range(320)]}))
    ended = ask(open_model(f"hf/{folder}").model, QUESTIONS)
    assert {(c.usage.generated, c.finish_reason) for c in ended} == {(1, "stop")}


@local
def test_a_template_with_a_reasoning_switch_has_two_levels(folders: dict[str, Path]) -> None:
    name = f"hf/{folders['switch']}"
    with pytest.raises(BadInput, match=r"several reasoning levels.*none, maximal"):
        open_model(name)
    prompts = {}
    for level in ("none", "maximal"):
        model: Any
        model, description = open_model(name, level)
        request = description.settings.request
        assert request == {"enable_thinking": level == "maximal"}
        tokens, _ = model._encode([SYSTEM, Message("user", "1")], request)
        prompts[level] = model._decode(tokens)
    assert prompts["none"] == prompts["maximal"] + "<think></think>"
    with pytest.raises(BadInput, match="no reasoning level 'none'; possible: default"):
        open_model(f"hf/{folders['chat']}", "none")


@local
@pytest.mark.parametrize(
    ("kind", "start"), [("no_system", "<|user|>{}\n\n1"), ("chat", "<|system|>{}<|end|><|user|>1")]
)
def test_a_template_without_system_prompts_gets_it_in_the_question(
    folders: dict[str, Path], kind: str, start: str
) -> None:
    model = opened(f"hf/{folders[kind]}")
    tokens, _ = model._encode([SYSTEM, Message("user", "1")], {})
    assert model._decode(tokens) == f"{start.format(SYSTEM.content)}<|end|><|assistant|>"


@local
def test_the_context_limits_the_answer_and_a_prompt_that_fills_it_fails(
    folders: dict[str, Path],
) -> None:
    model = opened(f"hf/{folders['gpt2']}")
    model.end_token_ids = frozenset()
    model._network.generation_config.eos_token_id = None
    *short, long = ask(model, [*QUESTIONS, "7 " * 300], max_tokens=4096)
    assert {completion.finish_reason for completion in short} == {"length"}
    assert {c.usage.input + c.usage.generated for c in short} == {160}
    assert {c.extra["batch"] for c in short} == {len(QUESTIONS)}
    alone = ask(model, QUESTIONS, together=False, max_tokens=4096)
    assert [c.text for c in alone] == [c.text for c in short]
    assert long.error is not None
    assert long.error.kind == "item"
    assert "context of 160" in long.error.message


@local
def test_a_batch_out_of_time_fails_and_one_out_of_memory_is_halved(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    model = opened(f"hf/{folders['llama']}")
    expected = [c.text for c in ask(model, QUESTIONS)]
    late = ask(model, QUESTIONS, timeout=0.0)
    assert [c.error.kind for c in late if c.error] == ["item"] * len(QUESTIONS)
    generate = model._network.generate

    def small(input_ids: Any, **others: Any) -> Any:
        if len(input_ids) > 1:
            raise torch.OutOfMemoryError("too much")
        return generate(input_ids=input_ids, **others)

    monkeypatch.setattr(model._network, "generate", small)
    assert [c.text for c in ask(model, QUESTIONS)] == expected


@local
def test_closing_stops_a_running_batch(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(f"hf/{folders['llama']}")
    model.end_token_ids = frozenset()
    model._network.generation_config.eos_token_id = None
    monkeypatch.setattr(model, "_context", 10**9)
    begun = threading.Event()
    generate = model._network.generate

    def observed(**arguments: Any) -> Any:
        begun.set()
        return generate(**arguments)

    monkeypatch.setattr(model._network, "generate", observed)

    async def go() -> Completion:
        settings = RequestSettings(max_tokens=10**6)
        answer = asyncio.create_task(model.answer([Message("user", "1")], settings))
        await asyncio.to_thread(begun.wait, 120)
        await asyncio.wait_for(model.close(), 120)
        return await answer  # type: ignore[no-any-return]

    stopped = asyncio.run(go())
    assert stopped.error is not None
    assert stopped.error.kind == "transient"


@local
def test_the_identity_depends_on_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    same = tiny_transformers.save(tmp_path / "same")
    other = tiny_transformers.save(tmp_path / "other", initializer_range=0.2)
    saved = (folders["llama"], same, other)
    first, second, third = (open_model(f"hf/{each}").description.identity for each in saved)
    assert first == second and first["precision"] == "float32"
    assert first["model_sha256"] != third["model_sha256"]
    with pytest.raises(BadInput, match="the same answer every time: omit --samples"):
        plan(RunSpec(f"hf/{same}", dataset="short", samples=2))


@each_row(__file__, "missing_files")
def test_the_error_for_an_incomplete_folder_names_the_missing_files(
    tmp_path: Path, files: tuple[str, ...], missing: str
) -> None:
    for file in files:
        (tmp_path / file).write_text("{}")
    with pytest.raises(BadInput, match=f"missing {missing}"):
        open_model(f"hf/{tmp_path}")


def test_the_error_without_the_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("config.json", "model.safetensors", "vocab.json"):
        (tmp_path / file).write_text("{}")
    monkeypatch.setattr("numbench.models.local_inference.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'numbench\[local\]'"):
        open_model(f"hf/{tmp_path}")


@local
def test_the_error_for_a_broken_model_is_one_line(tmp_path: Path) -> None:
    folder = tiny_transformers.save(tmp_path / "model")
    (folder / "config.json").write_text('{"model_type": "no-such-model"}')
    with pytest.raises(BadInput, match="cannot be loaded") as caught:
        open_model(f"hf/{folder}")
    assert "\n" not in str(caught.value)


@local
@pytest.mark.parametrize(("kind", "added"), [("llama", True), ("chat", False)])
def test_only_a_prompt_without_template_gets_the_start_token(
    folders: dict[str, Path], kind: str, added: bool
) -> None:
    from tokenizers.processors import TemplateProcessing

    model = opened(f"hf/{folders[kind]}")
    start = model._tokenizer.eos_token_id
    model._tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|end|> $A", special_tokens=[("<|end|>", start)]
    )
    tokens, _ = model._encode([SYSTEM, Message("user", "1")], {})
    assert (tokens[0] == start) is added
