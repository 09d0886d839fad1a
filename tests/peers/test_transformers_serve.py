"""A server of somebody else's over the same weights: `numbench run` there and in the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.journal import read_run
from bench.records import Response
from tests.models import tiny
from tests.peers.processes import BIN, free_port, numbench_run, serving


class Served(NamedTuple):
    """A running server and the folder of the model that it is asked for."""

    url: str
    model: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, port = tmp_path_factory.mktemp("serve"), free_port()
    model = tiny.save(folder / "model", tiny.PLAIN_TURNS, max_position_embeddings=1024)
    url = f"http://127.0.0.1:{port}"
    command = [BIN / "transformers", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with serving(
        [*command, "--device", "cpu"],
        f"{url}/health",
        folder,
        HF_HUB_OFFLINE="1",
        HF_HOME=str(folder),
    ):
        yield Served(f"{url}/v1", model)


def asked(out: Path, *arguments: str) -> dict[str, Response]:
    """The responses of one `numbench run` over two questions of each task."""
    done = numbench_run(out, "--limit", "2", *arguments)
    assert done.returncode == 0, done.stderr
    return read_run(out).responses


def test_the_served_model_says_and_counts_what_it_does_in_the_process(
    served: Served, tmp_path: Path
) -> None:
    where = ("--model", f"openai/{served.model}", "--base-url", served.url)
    there = asked(tmp_path / "there", *where)
    here = asked(tmp_path / "here", "--model", f"hf/{served.model}")
    assert there.keys() == here.keys()
    assert len({item.partition("-")[0] for item in there}) == 9
    for response in there.values():
        assert (response.error, response.attempts) == (None, 1)
        assert response.usage.source == "reported"
    ended = [item for item, response in here.items() if response.finish_reason == "stop"]
    assert ended, "no answer ended within the context: nothing can be compared"
    for item in ended:
        assert there[item].text == here[item].text
        assert there[item].usage.input == here[item].usage.input
        assert there[item].usage.generated == here[item].usage.generated
