"""A server of somebody else's over the same weights: `numbench run` there and in the process."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.journal import read_run
from bench.records import Response
from tests.models import tiny

NEEDED = ("torch", "transformers", "fastapi", "uvicorn")
LACKING = [name for name in NEEDED if find_spec(name) is None]
BIN = Path(sys.executable).parent
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        bool(LACKING),
        reason=f"{', '.join(LACKING)} not installed: pip install torch 'transformers[serving]'",
    ),
    pytest.mark.skipif(
        not (BIN / "transformers").is_file(), reason="this transformers has no command to serve"
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.save(tmp_path / "model", tiny.PLAIN_TURNS, max_position_embeddings=1024)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [BIN / "transformers", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "serve.log").open("wb") as log:
        process = subprocess.Popen([*command, "--device", "cpu"], stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"transformers serve ended with exit code {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    pytest.fail("transformers serve did not come up within two minutes")


def asked(out: Path, *arguments: str) -> dict[str, Response]:
    """The responses of one `numbench run` over a few questions."""
    choice = ["--dataset", "v1", "--tasks", "minmax,addition", "--limit", "4", "--out", str(out)]
    command = [BIN / "numbench", "run", *arguments, *choice]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return read_run(out).responses


def test_the_served_model_says_and_counts_what_it_does_in_the_process(
    folder: Path, server: str, tmp_path: Path
) -> None:
    served = asked(tmp_path / "served", "--model", f"openai/{folder}", "--base-url", server)
    here = asked(tmp_path / "here", "--model", f"hf/{folder}")
    assert len(served) == len(here) == 8
    assert all(response.error is None for response in (*served.values(), *here.values()))
    ended = [item for item, response in here.items() if response.finish_reason == "stop"]
    assert ended, "no answer ended within the context: nothing can be compared"
    for item in ended:
        assert served[item].text == here[item].text
        assert served[item].usage.input == here[item].usage.input
        assert served[item].usage.generated == here[item].usage.generated
