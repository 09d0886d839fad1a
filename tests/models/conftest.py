"""In every test of the models each provider has an API key."""

import pytest

from tests.models.adapter_calls import KEY

PROVIDERS = (
    *("OPENAI", "OPENROUTER", "GEMINI", "ANTHROPIC", "XAI", "DEEPSEEK", "DASHSCOPE"),
    *("MOONSHOT", "MISTRAL", "META", "TOGETHER"),
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROVIDERS:
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
