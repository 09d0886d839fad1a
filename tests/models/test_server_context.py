"""The context of one's own server, from its list of models."""

from pathlib import Path

import pytest

from numbench.models.http_client import server_context
from tests.support.command_line import CommandLine
from tests.support.servers import chat, serve

VLLM = {"id": "some", "max_model_len": 1024}
LLAMA_CPP = {"id": "some", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}
OTHER = {"id": "other", "max_model_len": 512}


@pytest.mark.parametrize(
    ("listed", "context"),
    [
        ({"data": [OTHER, VLLM]}, 1024),
        ({"data": [LLAMA_CPP, OTHER]}, 2048),
        # A server with one model may answer under any name.
        ({"data": [OTHER]}, 512),
        ({"data": [OTHER, OTHER]}, None),
        ({"data": []}, None),
        ({"data": [{"id": "some"}]}, None),
        ({"data": [{"id": "some", "max_model_len": -1}]}, None),
        ({"data": [{"id": "some", "max_model_len": "1024"}]}, None),
        ({"data": [VLLM], "more": "x" * 2**21}, None),
        ([VLLM], None),
        (None, None),
    ],
)
def test_the_context_is_what_the_server_lists(
    tmp_path: Path, listed: object, context: int | None
) -> None:
    numbench = CommandLine(tmp_path, None)
    with serve(lambda _: chat()) as server:
        server.models = listed
        assert server_context(f"{server.url}/v1/", "some") == context
        asked = ("run", "--model", "openai/some", "--base-url", f"{server.url}/v1", "--dry-run")
        plan = " ".join(numbench(*asked).split())
        told = f" ({context:,} tokens with the prompt)" if context else ""
        assert f"limited by the server's context only{told}; --max-tokens N sets a limit" in plan
        assert "Facts about the model" not in plan
        assert "Length of an answer" not in numbench(*asked, "--max-tokens", "5")
        assert not server.received
    assert server_context(server.url, "some") is server_context("http://[", "some") is None
