"""Runs whose server or model name is wrong, and servers that go away during a run."""

from pathlib import Path

import pytest

from numbench.errors import BadInput, NumbenchError
from numbench.journal.run_folder import read_run
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import go, good, run_with
from tests.support.servers import ReceivedRequest, Reply, Script, Server, serve

MODELS = ["openai/some", "gemini/some", "anthropic/some"]


@pytest.fixture
def stopped() -> Server:
    """A server that does not run any more."""
    with serve(good) as server:
        pass
    return server


def serving(*names: str, path: str = "/v1") -> Script:
    """A server with an API below `path` that has some models."""

    async def script(received: ReceivedRequest) -> Reply:
        if received.path != f"{path}/chat/completions":
            return servers.error(404, "Not Found.")
        if received.body["model"] in names:
            return await good(received)
        return servers.error(404, f"The model `{received.body['model']}` does not exist.")

    return script


@pytest.mark.parametrize("model", MODELS)
def test_a_server_that_does_not_run_is_wrong_use_and_leaves_no_folder(
    dataset: Path, tmp_path: Path, model: str, stopped: Server
) -> None:
    out = tmp_path / "results" / "run"
    with pytest.raises(BadInput) as caught:
        go(stopped, dataset, out, model=model)
    assert str(caught.value) == (
        f"no server at {stopped.url} (Connection refused); start it or correct --base-url"
    )
    assert not out.exists()


def test_a_server_that_never_replied_is_wrong_use_in_later_calls_too(
    dataset: Path, tmp_path: Path, stopped: Server
) -> None:
    out = tmp_path / "run"
    with serve(servers.torn) as server:
        assert go(server, dataset, out, tasks=["minmax"]).errors == 5
    with pytest.raises(BadInput, match=f"no server at {stopped.url}"):
        go(stopped, dataset, out, tasks=["minmax"])


@pytest.mark.parametrize("model", MODELS)
def test_an_unknown_host_is_wrong_use_only_if_the_user_named_it(
    dataset: Path, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://no-such-host.invalid/v1"
    with pytest.raises(BadInput, match=rf"^no server at {url} \(.+\); start it or correct --base"):
        run_with(model=model, dataset=dataset, out=tmp_path / "named", base_url=url)
    # Instead of the provider, which a test must not reach.
    monkeypatch.setenv("https_proxy", "http://no-such-proxy.invalid:3128")
    with pytest.raises(NumbenchError, match=r"proxy no-such-proxy\.invalid:3128") as caught:
        run_with(model=model, dataset=dataset, out=tmp_path / "default", policy={"max_attempts": 1})
    assert caught.value.exit_code == 1
    assert "--base-url" not in str(caught.value)
    assert not (tmp_path / "named").exists() and not (tmp_path / "default").exists()


def test_a_folder_that_existed_before_or_holds_a_response_is_kept(
    dataset: Path, tmp_path: Path, stopped: Server
) -> None:
    existing = tmp_path / "existing"
    existing.mkdir()
    with pytest.raises(BadInput, match="no server at"):
        go(stopped, dataset, existing)
    assert existing.is_dir()

    async def refuses_later(received: ReceivedRequest) -> Reply:
        return await good(received) if len(server.received) == 1 else servers.error(404, "Gone.")

    out = tmp_path / "answered"
    with serve(refuses_later) as server, pytest.raises(NumbenchError) as caught:
        go(server, dataset, out, concurrency=1)
    assert str(caught.value) == (
        "openai/some: HTTP 404: Gone; no further requests were sent; 1 answered now, 9 still open, "
        f"saved in {out}; the same command continues"
    )
    assert caught.value.exit_code == 1
    assert len(read_run(out).responses) == 1


@each_row(__file__, "wrong_servers")
def test_a_wrong_model_or_url_is_named_with_what_to_try(
    dataset: Path, tmp_path: Path, path: str, model: str, message: str
) -> None:
    with serve(serving("other", "mymodel")) as server, pytest.raises(BadInput) as caught:
        out, url = tmp_path / "run", server.url + path
        go(server, dataset, out, model=f"openai/{model}", base_url=url)
    assert message.format(url=server.url) in str(caught.value)
    assert not out.exists()


def test_a_rejected_key_of_another_server_names_the_option_for_it(
    dataset: Path, tmp_path: Path
) -> None:
    message = "401: no key; .*the key for http://127.0.0.1:.* with --api-key-env VARIABLE"
    with (
        serve(lambda _: servers.error(401, "no key")) as server,
        pytest.raises(NumbenchError, match=message),
    ):
        go(server, dataset, tmp_path / "run")
