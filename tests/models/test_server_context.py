"""The context of one's own server, from its list of models."""

from pathlib import Path

from numbench.models.http_client import server_context
from tests.support.case_tables import each_row
from tests.support.command_line import CommandLine
from tests.support.servers import chat, serve

ONE = {"id": "some", "max_model_len": 1024}
OTHERS: dict[object, object] = {"a list alone": [ONE]}
OTHERS |= {"too long": {"data": [ONE], "more": "x" * 2**21}}


# A server with one model may answer under any name.
@each_row(__file__, "listed_models")
def test_the_context_is_what_the_server_lists(
    tmp_path: Path, listed: object, context: int | None
) -> None:
    numbench = CommandLine(tmp_path, None)
    with serve(lambda _: chat()) as server:
        server.models = OTHERS[listed] if isinstance(listed, str) else listed
        assert server_context(f"{server.url}/v1/", "some") == context
        url = f"--base-url={server.url}/v1"
        asked = ("run", "--model=openai/some", url, "--limit=1", "--dry-run")
        plan = " ".join(numbench(*asked).split())
        told = f" ({context:,} tokens with the prompt)" if context else ""
        assert f"limited by the server's context only{told}; --max-tokens N sets a limit" in plan
        assert "Facts about the model" not in plan
        assert "Length of an answer" not in numbench(*asked, "--max-tokens", "5")
        assert not server.received
    assert server_context(server.url, "some") is server_context("http://[", "some") is None
