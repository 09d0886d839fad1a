"""litellm's proxy, which speaks OpenAI's and Gemini's formats and insists on a key."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.journal import read_run
from bench.records import Usage
from tests.peers.processes import BIN, free_port, numbench_run, serving

NAME = "always-one"
SAYS = '{"answer": 1}'


class Proxy(NamedTuple):
    """A running proxy and the key that it takes."""

    url: str
    key: str


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    key = f"sk-{secrets.token_hex(16)}"
    served = {"model": f"openai/{NAME}", "api_key": "none", "mock_response": SAYS}
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
def test_all_tasks_are_answered_and_the_second_run_asks_nothing(
    proxy: Proxy, tmp_path: Path, model: str, path: str, variable: str
) -> None:
    arguments = ("--model", model, "--base-url", proxy.url + path, "--limit", "3")
    done = numbench_run(tmp_path / "run", *arguments, keys={variable: proxy.key})
    assert done.returncode == 0, done.stderr
    assert "27 answered now, 0 before, 0 failed" in done.stdout
    recorded = read_run(tmp_path / "run")
    assert len(recorded.info.tasks) == 9
    assert len(recorded.responses) == 27
    # What a mock costs, in litellm's own words; Gemini's format names the visible part.
    visible = 20 if model.startswith("gemini") else None
    usage = Usage(input=10, generated=20, visible=visible, source="reported")
    for response in recorded.responses.values():
        assert (response.text, response.error, response.finish_reason) == (SAYS, None, "stop")
        assert (response.attempts, response.usage, response.cost) == (1, usage, None)
    again = numbench_run(tmp_path / "run", *arguments, keys={variable: proxy.key})
    assert "0 answered now, 27 before" in again.stdout
    assert nowhere(proxy.key, tmp_path, done.stdout, done.stderr)


@ROUTES
def test_a_wrong_key_ends_the_run_in_one_line_that_does_not_say_it(
    proxy: Proxy, tmp_path: Path, model: str, path: str, variable: str
) -> None:
    wrong = f"sk-{secrets.token_hex(16)}"
    arguments = ("--model", model, "--base-url", proxy.url + path)
    done = numbench_run(tmp_path / "run", *arguments, keys={variable: wrong})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.match(f"numbench: {model}: HTTP 40[01]: ", line)
    assert line.endswith("nothing more was asked")
    assert done.stdout == ""
    assert read_run(tmp_path / "run").responses == {}
    assert nowhere(wrong, tmp_path, done.stderr)


@ROUTES
def test_a_model_that_the_proxy_lacks_ends_the_run_in_one_line(
    proxy: Proxy, tmp_path: Path, model: str, path: str, variable: str
) -> None:
    unknown = model.replace(NAME, "nobody")
    arguments = ("--model", unknown, "--base-url", proxy.url + path)
    done = numbench_run(tmp_path / "run", *arguments, keys={variable: proxy.key})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"numbench: {unknown}: HTTP 4")
    assert "nobody" in line
    assert read_run(tmp_path / "run").responses == {}


def nowhere(key: str, folder: Path, *said: str) -> bool:
    """Whether `key` is in no file below `folder` and in nothing that was said."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert files
    return not any(key.encode() in text for text in [*files, *(text.encode() for text in said)])
