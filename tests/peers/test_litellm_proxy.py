"""litellm's proxy, which implements OpenAI's and Gemini's APIs and requires a key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from numbench.journal.run_folder import read_run
from numbench.records import Usage
from tests.peers.processes import numbench_run
from tests.peers.servers import Peer, litellm_for

pytestmark = pytest.mark.slow

NAME = "always-one"
ANSWER = '{"answer": 1}'


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, str]]:
    with litellm_for(tmp_path_factory.mktemp("proxy"), NAME, mock_response=ANSWER) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("model", "variable"),
    [(f"openai/{NAME}", "OPENAI_API_KEY"), (f"gemini/{NAME}", "GEMINI_API_KEY")],
)
def test_all_tasks_are_answered_and_a_second_run_sends_no_request(
    proxy: tuple[Peer, str], tmp_path: Path, model: str, variable: str
) -> None:
    url, key = proxy[0].url, proxy[1]
    url = url.removesuffix("/v1") if model.startswith("gemini") else url
    arguments = ("--model", model, "--base-url", url, "--limit", "3")
    done = numbench_run(tmp_path / "run", *arguments, keys={variable: key})
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
    again = numbench_run(tmp_path / "run", *arguments, keys={variable: key})
    assert "0 answered now, 27 done earlier" in again.stdout
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written and not any(key.encode() in text for text in [*written, done.stdout.encode()])
