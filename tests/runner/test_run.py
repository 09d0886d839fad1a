"""Runs against a scripted server: what is sent, stored, retried and resumed."""

from pathlib import Path

import pytest

from numbench.errors import BadInput, NumbenchError
from numbench.journal.run_folder import read_run
from numbench.runner.progress import RunProgress
from tests.support import servers
from tests.support.runs import KEY, MODEL, go, good, questions, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve


def test_a_run_stores_every_answer_and_is_not_repeated(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        report = go(server, dataset, out)
        assert (report.answered, report.completed, report.skipped, report.errors) == (10, 10, 0, 0)
        assert (report.input_tokens, report.generated_tokens, report.cost) == (100, 40, 5.0)
        assert set(server.counts.values()) == {1}
        again = go(server, dataset, out)
        assert (again.completed, again.skipped) == (0, 10)
        assert len(server.received) == 10
    recorded = read_run(out)
    assert set(recorded.responses) == {i.id for items in questions(5).values() for i in items}
    response = next(iter(recorded.responses.values()))
    assert response.text == '{"answer": 1}'
    assert response.attempts == 1
    assert response.latency is not None
    assert response.latency > 0
    assert response.at is not None
    info = recorded.info
    assert (info.model, info.reasoning, info.tasks) == (MODEL, "default", ("minmax", "addition"))
    assert {"numbench", "python"} == info.versions.keys()
    assert info.settings["base_url"] == server.url
    assert info.settings["temperature"] == 0.0
    assert "timeout" not in info.settings


def test_limit_and_tasks_select_items_in_turn(dataset: Path, tmp_path: Path) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", limit=2, concurrency=1)
        assert ["minimum" in received.prompt for received in server.received] == [True, False] * 2
        go(server, dataset, tmp_path / "run", tasks=["addition"], limit=2)
        assert len(server.received) == 4
        report = go(server, dataset, tmp_path / "run", limit=3)
        assert (report.completed, report.skipped) == (2, 4)
    assert read_run(tmp_path / "run").info.limit == 3


@pytest.mark.parametrize("model", [MODEL, "gemini/some"])
def test_a_bad_key_ends_the_run_before_other_requests_are_sent(tmp_path: Path, model: str) -> None:
    dataset = small_dataset(tmp_path / "data", 100)
    with serve(lambda _: servers.error(401, f"Incorrect API key provided: {KEY}")) as server:
        with pytest.raises(NumbenchError, match="HTTP 401: Incorrect") as caught:
            go(server, dataset, tmp_path / "run", model=model, concurrency=8)
        assert sum(server.counts[prompt] for prompt in server.counts if prompt) <= 8
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_setting_that_a_server_refuses_is_sent_once(tmp_path: Path) -> None:
    """Those that follow wait for the result of the first request, for a second at most."""
    dataset = small_dataset(tmp_path / "data", 20)
    with (
        serve(lambda _: servers.error(400, "max_tokens is too large: 9999")) as server,
        pytest.raises(NumbenchError, match="too large"),
    ):
        go(server, dataset, tmp_path / "run", concurrency=16, max_tokens=9999)
    assert len(server.received) == 1


def test_a_resumed_run_shows_the_progress_of_earlier_calls(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(401) if len(server.received) == 5 else await good(received)

    seen: list[RunProgress] = []
    with serve(script) as server:
        with pytest.raises(NumbenchError):
            go(server, dataset, tmp_path / "run", concurrency=1)
        go(server, dataset, tmp_path / "run", on_progress=seen.append, judge=lambda *_: True)
    first, last = seen[0], seen[-1]
    assert (first.done, first.total, first.previously_done) == (4, 10, 4)
    assert (last.done, last.total, last.previously_done) == (10, 10, 4)
    counts = [(o.correct, o.generated_tokens, o.cost) for o in (first.overall, last.overall)]
    assert counts == [(4, 16, 2.0), (10, 40, 5.0)]


def test_without_a_callback_progress_is_shown_on_stderr(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", on_progress=None)
    output = capsys.readouterr()
    assert output.out == ""
    assert "10/10 done" in output.err
    assert "$5.0000" in output.err


def test_a_key_in_the_path_of_a_url_is_not_stored_and_the_run_is_resumed(
    dataset: Path, tmp_path: Path
) -> None:
    secret, out = "0123456789abcdef0123456789abcdef", tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        if "1 + 1" in received.prompt:
            return servers.error(400, f"content_filter at {received.path}")
        return servers.chat(f"path {received.path}")

    with serve(script) as server:
        url = f"{server.url}/{secret}/v1"
        assert go(server, dataset, out, base_url=url).answered == 9
        assert {each.path for each in server.received} == {f"/{secret}/v1/chat/completions"}
        assert secret.encode() not in b"".join(
            file.read_bytes() for file in out.rglob("*") if file.is_file()
        )
        # Older versions wrote the URL as it is.
        stored = (out / "run.json").read_text()
        masked = str(read_run(out).info.settings["base_url"])
        (out / "run.json").write_text(stored.replace(masked, url))
        assert go(server, dataset, out, base_url=url).skipped == 10
        assert (out / "run.json").read_text() == stored
        with pytest.raises(BadInput, match=r"settings\.base_url") as caught:
            go(server, dataset, out, base_url=f"{server.url}/{secret[1:]}/v1")
        assert secret[1:] not in str(caught.value)


def test_streaming_is_recorded_and_may_change_within_a_run(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        recorded = []
        for limit, stream in ((1, None), (2, False), (3, False), (4, True)):
            go(server, dataset, out, limit=limit, stream=stream)
            recorded.append(read_run(out).info.settings.get("stream"))
        assert recorded == [None, "mixed", "mixed", "mixed"]
        assert [servers.is_streamed(r) for r in server.received] == 6 * [False] + 2 * [True]
        for stream in (True, False):
            go(server, dataset, tmp_path / str(stream), stream=stream)
            go(server, dataset, tmp_path / str(stream), stream=stream)
            assert read_run(tmp_path / str(stream)).info.settings["stream"] is stream
