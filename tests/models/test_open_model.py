from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import BadInput
from bench.models import describe_model, open_batch, open_model
from bench.models.catalogue import entries, load

PAPER = {
    "gpt-5": "GPT 5",
    "gemini-2.5-pro": "Gemini 2.5 Pro",
    "gemini-2.5-flash": "Gemini 2.5 Flash",
    "gpt-oss-120b": "GPT OSS 120B",
    "qwen3-235b-2507": "Qwen3 235B 2507",
    "deepseek-v3.1": "DeepSeek v3.1",
    "kimi-k2-0905": "Kimi K2 0905",
    "llama-4-maverick": "Llama 4 Maverick",
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in load().provider.values():
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)


def test_the_catalogue_lists_the_papers_models(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {entry.name: entry.display for entry in entries()} == PAPER
    levels = {entry.name: entry.levels for entry in entries()}
    assert levels["gpt-5"] == ("minimal", "low", "medium", "high", "maximal")
    assert levels["gemini-2.5-pro"] == ("minimal", "maximal")
    assert levels["kimi-k2-0905"] == ("none",)
    assert not any(entry.key_is_set for entry in entries())
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    pro = next(entry for entry in entries() if entry.name == "gemini-2.5-pro")
    assert (pro.key, pro.key_is_set) == ("GOOGLE_API_KEY", True)


@pytest.mark.parametrize(
    ("model", "reasoning", "said"),
    [
        ("gpt5", None, r"unknown model 'gpt5' \(did you mean gpt-5\?\).*llama-4-maverick.*replay"),
        ("checkpoint/", None, "unknown model.*checkpoint/PATH"),
        ("checkpoint/x", None, "checkpoint/x: there is no folder x"),
        ("hf/", None, "unknown model.*hf/PATH"),
        ("hf/x", None, "hf/x: there is no folder x"),
        ("openai/", None, "unknown model"),
        ("", None, "unknown model"),
        ("baseline/float16", None, "baseline/float32"),
        ("gpt-5", "none", "no reasoning level 'none'; possible: minimal, low, medium, high, max"),
        ("gemini-2.5-pro", "none", "possible: minimal, maximal"),
        ("kimi-k2-0905", "high", "possible: none"),
        ("openai/x", "maximal", "possible: none, minimal, low, medium, high"),
        ("baseline/float64", "low", "possible: none"),
        ("gpt-5", None, "several reasoning levels, give --reasoning: minimal"),
        ("gpt-5", "minimal", "gpt-5 needs a key: set OPENAI_API_KEY"),
        ("gemini-2.5-pro", "minimal", "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("kimi-k2-0905", None, "set OPENROUTER_API_KEY"),
        ("openai/x", None, "set OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_opened_is_told_with_what_can(
    model: str, reasoning: str | None, said: str
) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        open_model(model, reasoning)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://x",
        "http://",
        "http://a:b:c",
        "http://[",
        "http://[zz::]",
        "http://me:PASSWORD@host:99999/v1",
        "http://me:PASSWORD@host:PASSWORD/v1",
        "http://me:PASSWORD@host\u2100.com/v1",
        "http://a..b/v1",
        "http://ho st/v1",
        "http://host/v1\n",
    ],
)
def test_a_malformed_base_url_is_bad_input_that_repeats_nothing_of_it(url: str) -> None:
    for door in (open_model, describe_model):
        with pytest.raises(BadInput) as caught:
            door("openai/x", None, url)
        assert str(caught.value) == "--base-url: not a URL such as http://127.0.0.1:8000/v1"
        assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("model", "url", "said"),
    [
        ("openai/x", "http://me:PASSWORD@host/v1", "give the server's key by OPENAI_API_KEY"),
        ("gemini/x", "http://PASSWORD@host", "key by GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("litellm/openai/x", "http://PASSWORD@host", "by the provider's environment variable"),
        ("openai/x", "http://host/v1?token=PASSWORD", "leave out what begins with"),
        ("openai/x", "http://host/v1#PASSWORD", "leave out what begins with"),
    ],
)
def test_a_base_url_holds_no_password(model: str, url: str, said: str) -> None:
    for door in (open_model, describe_model):
        with pytest.raises(BadInput, match=f"--base-url.*{said}") as caught:
            door(model, None, url)
        assert "PASSWORD" not in str(caught.value)
    if not model.startswith("litellm"):
        with pytest.raises(BadInput, match="--base-url"):
            open_batch(model, None, url)


@pytest.mark.parametrize(
    ("url", "written"),
    [("https://HOST:8000/v1", "https://host:8000/v1"), ("http://[::1]:80", "http://[::1]:80")],
)
def test_a_base_url_is_recorded(url: str, written: str) -> None:
    opened = open_model("gpt-5", "low", url)
    assert opened.about.identity == {"route": "openai/gpt-5", "base_url": written}
    with pytest.raises(BadInput, match="leave out --base-url"):
        open_model("baseline/float64", None, "http://x")


@pytest.mark.parametrize(
    "key", ["sk-PLANTED\u2019 0123", "sk-PLANTED\n0123", "sk-PLANTED 0123", "sk-\x7fPLANTED"]
)
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/x", "OPENAI_API_KEY"),
        ("gemini/x", "GOOGLE_API_KEY"),
        ("litellm/anthropic/claude-x", "ANTHROPIC_API_KEY"),
        ("litellm/huggingface/a/b", "HF_TOKEN"),
    ],
)
def test_a_key_that_no_header_can_carry_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str, key: str
) -> None:
    monkeypatch.setenv(variable, key)
    with pytest.raises(BadInput, match=f"^{variable} holds a character that no key has") as caught:
        open_model(model, None, "http://x")
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"OPENAI_API_KEY=\xff\xfePLANTED", "is not UTF-8 text"),
        (b"OPENAI_API_KEY=PLANTED\x00", "what none can hold"),
    ],
)
def test_a_malformed_env_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(BadInput, match=said) as caught:
        open_model("openai/x", None, "http://x")
    assert str(tmp_path / ".env") in str(caught.value)
    assert "PLANTED" not in str(caught.value)


def test_levels_and_names() -> None:
    opened = open_model("openai/some", None, "http://x")
    assert (opened.about.level, opened.about.display) == ("default", "some")
    assert open_model("kimi-k2-0905", None, "http://x").about.level == "none"
    qwen = open_model("qwen3-235b-2507", "maximal", "http://x").about
    assert qwen.display == PAPER["qwen3-235b-2507"]


def test_heavy_packages_are_imported_only_by_the_model_that_needs_them() -> None:
    code = (
        "import sys, bench.models, bench.runner, bench.journal, bench.models.catalogue\n"
        "heavy = {'numpy', 'openai', 'google.genai', 'litellm', 'pandas', 'httpx', 'aiohttp'}\n"
        "found = heavy & set(sys.modules)\n"
        "assert not found, found\n"
        "bench.models.open_model('baseline/float64')\n"
        "assert not heavy & set(sys.modules)\n"
        "bench.models.open_model('openai/x', None, 'http://x')\n"
        "assert 'openai' in sys.modules and 'litellm' not in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
