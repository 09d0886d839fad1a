"""Third-party servers and `numbench`, each in its own process."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
STARTUP_TIMEOUT_SECONDS = 900

KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def free_port() -> int:
    """Return a port of 127.0.0.1 without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(
    command: Sequence[str | Path], health: str, folder: Path, **environment: str
) -> Iterator[None]:
    """Run a server in `folder` during the block, which starts when `health` responds."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=os.environ | environment
        )
    try:
        _wait_for(health, process, folder)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + STARTUP_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log = (folder / "server.log").read_text(errors="replace")[-2000:]
            pytest.fail(f"the server ended with exit code {process.returncode}: {log}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"the server did not start within {STARTUP_TIMEOUT_SECONDS} s")


def numbench_run(
    out: Path, *arguments: str, keys: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `numbench run` on v1 into `out`, without API keys except `keys`."""
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    return subprocess.run(
        [BIN / "numbench", "run", "--dataset", "v1", "--out", str(out), *arguments],
        capture_output=True,
        text=True,
        env=environment | dict(keys or {}),
        timeout=240,
    )
