"""`transformers serve` and the model in this process give the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from numbench.journal.run_folder import read_run
from numbench.records import Response
from tests.models import tiny_transformers
from tests.peers.processes import numbench_run
from tests.peers.servers import Peer, transformers_serve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder = tmp_path_factory.mktemp("serve")
    model = tiny_transformers.save(
        folder / "model", tiny_transformers.PLAIN_TURNS, max_position_embeddings=1024
    )
    with transformers_serve(folder, model) as peer:
        yield peer


def run_model(out: Path, *arguments: str) -> dict[str, Response]:
    """Return the responses of one `numbench run` with two questions of each task."""
    done = numbench_run(out, "--limit", "2", *arguments)
    assert done.returncode == 0, done.stderr
    return read_run(out).responses


def test_answers_and_token_counts_equal_those_of_the_model_in_this_process(
    served: Peer, tmp_path: Path
) -> None:
    server = ("--model", f"openai/{served.model}", "--base-url", served.url)
    hosted = run_model(tmp_path / "hosted", *server)
    local = run_model(tmp_path / "local", "--model", f"hf/{served.model}")
    assert hosted.keys() == local.keys()
    assert len({item.partition("-")[0] for item in hosted}) == 9
    for response in hosted.values():
        assert (response.error, response.attempts) == (None, 1)
        assert response.usage.source == "reported"
    ended = [item for item, response in local.items() if response.finish_reason == "stop"]
    assert ended, "no answer ended within the context, so that none can be compared"
    for item in ended:
        assert hosted[item].text == local[item].text
        assert hosted[item].usage.input == local[item].usage.input
        assert hosted[item].usage.generated == local[item].usage.generated
