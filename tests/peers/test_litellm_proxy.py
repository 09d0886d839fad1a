"""litellm's proxy, which implements OpenAI's and Gemini's APIs and requires a key."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from numbench.journal import read_run
from numbench.records import Usage
from tests.peers.processes import BIN, free_port, numbench_run, serving

pytestmark = pytest.mark.slow

NAME = "always-one"
ANSWER = '{"answer": 1}'


class Proxy(NamedTuple):
    """A running proxy and its key."""

    url: str
    key: str


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    key = f"sk-{secrets.token_hex(16)}"
    served = {"model": f"openai/{NAME}", "api_key": "none", "mock_response": ANSWER}
    # JSON is YAML.
    config = {"model_list": [{"model_name": NAME, "litellm_params": served}]}
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [BIN / "litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with serving(
        [*command, "--port", str(port), "--telemetry", "False"],
        f"{url}/health/liveliness",
        folder,
        LITELLM_MASTER_KEY=key,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
    ):
        yield Proxy(url, key)


ROUTES = pytest.mark.parametrize(
    ("model", "path", "variable"),
    [(f"openai/{NAME}", "/v1", "OPENAI_API_KEY"), (f"gemini/{NAME}", "", "GEMINI_API_KEY")],
)


@ROUTES
def test_all_tasks_are_answered_and_a_second_run_sends_no_request(
    proxy: Proxy, tmp_path: Path, model: str, path: str, variable: str
) -> None:
    arguments = ("--model", model, "--base-url", proxy.url + path, "--limit", "3")
    done = numbench_run(tmp_path / "run", *arguments, keys={variable: proxy.key})
    assert done.returncode == 0, done.stderr
    assert "27 answered now, 0 done earlier, 0 failed" in done.stdout
    recorded = read_run(tmp_path / "run")
    assert len(recorded.info.tasks) == 9
    assert len(recorded.responses) == 27
    # The usage of a mock response; Gemini's format also has the visible part, so reasoning is 0.
    usage = Usage(input=10, generated=20, source="reported")
    if model.startswith("gemini"):
        usage = Usage(input=10, reasoning=0, visible=20, generated=20, source="reported")
    for response in recorded.responses.values():
        assert (response.text, response.error, response.finish_reason) == (ANSWER, None, "stop")
        assert (response.attempts, response.usage, response.cost) == (1, usage, None)
    again = numbench_run(tmp_path / "run", *arguments, keys={variable: proxy.key})
    assert "0 answered now, 27 done earlier" in again.stdout
    assert is_secret(proxy.key, tmp_path, done.stdout, done.stderr)


def is_secret(key: str, folder: Path, *outputs: str) -> bool:
    """Return whether `key` is in no file below `folder` and in no output."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert files
    return not any(key.encode() in text for text in [*files, *(text.encode() for text in outputs)])
