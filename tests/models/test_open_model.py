from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import BadInput
from bench.models import open_model
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
        ("checkpoint/x", None, "unknown model"),
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
    "url", ["localhost:8000", "ftp://x", "http://", "http://a:b:c", "http://["]
)
def test_a_malformed_base_url_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="--base-url"):
        open_model("openai/x", None, url)


def test_a_base_url_is_recorded_without_its_credentials() -> None:
    opened = open_model("gpt-5", "low", "https://me:secret@host:8000/v1?token=secret")
    assert opened.about.identity == {"route": "openai/gpt-5", "base_url": "https://host:8000/v1"}
    with pytest.raises(BadInput, match="leave out --base-url"):
        open_model("baseline/float64", None, "http://x")


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
