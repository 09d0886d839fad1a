"""`--retry`: repeat requests whose response is empty, truncated, refused or an error."""

from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.journal.run_folder import iter_responses, read_run
from numbench.records import Response
from numbench.reporting.read import read_report_data
from numbench.reporting.warnings import AFFECTS_SCORES, report_warnings
from numbench.runner.planning import plan
from numbench.runner.progress import RunProgress
from numbench.runner.spec import RunSpec
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import MODEL, flawed, go, questions
from tests.support.servers import ReceivedRequest, Reply, serve

KINDS = {"1 + 1": "empty", "2 + 1": "empty", "3 + 1": "truncated", "4 + 1": "refused"}
KINDS |= {"5 + 1": "error"}
IDS = {item.id: item.prompt for item in questions(5)["addition"]}


def kind_of(response: Response) -> str | None:
    """Return the flaw that the first answer to this response's item had."""
    prompt = IDS.get(response.item_id, "")
    return next((kind for numbers, kind in KINDS.items() if numbers in prompt), None)


@each_row(__file__, "retried_kinds")
def test_only_the_named_kinds_are_requested_again(
    dataset: Path, tmp_path: Path, retry: tuple[str, ...], count: int
) -> None:
    out, states = tmp_path / "run", list[RunProgress]()
    with serve(flawed) as server:
        go(server, dataset, out)
        spec = RunSpec(MODEL, dataset=dataset, out=out, base_url=server.url, retry=retry)
        assert plan(spec).requests == count
        report = go(server, dataset, out, retry=retry, on_progress=states.append)
        assert report.completed == report.answered == len(server.received) - 10 == count
    responses = list(iter_responses(out))
    assert len(responses) == 10 + count
    for response in responses[10:]:
        assert response.retry_of == kind_of(response)
        assert kind_of(response) in retry
    for response in read_run(out).responses.values():
        has_flaw = kind_of(response) is not None and kind_of(response) not in retry
        assert (response.text == '{"answer": 1}') is not has_flaw
    # Every request that was billed counts, also those whose answers were replaced.
    assert states[-1].overall.cost == 0.5 * (9 + count)
    assert states[-1].done == 10


def test_a_truncated_answer_may_be_requested_with_another_token_limit(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serve(flawed) as server:
        go(server, dataset, out, max_tokens=5, tasks=["addition"])
        with pytest.raises(BadInput, match="max_tokens 5, but this one has 50"):
            go(server, dataset, out, max_tokens=50)
        before = len(server.received)
        # Only truncated answers may differ in their limit; MinMax, which is open, waits.
        with pytest.raises(BadInput, match="--retry empty: only truncated answers"):
            go(server, dataset, out, max_tokens=50, retry=("truncated", "empty"))
        report = go(server, dataset, out, max_tokens=50, retry=("truncated",))
        assert report.answered == 1
        assert [each.body["max_tokens"] for each in server.received[before:]] == [50]
        assert go(server, dataset, out, max_tokens=5).answered == 5
    run = read_run(out)
    assert run.info.settings["max_tokens"] == 5
    retried = [r for r in run.responses.values() if r.retry_of is not None]
    assert [(each.retry_of, each.max_tokens) for each in retried] == [("truncated", 50)]
    told = report_warnings(read_report_data([out], references=False))[AFFECTS_SCORES]
    assert any("answers from --retry" in each and "(1: Add 1)" in each for each in told)


def test_without_a_new_token_limit_a_retry_keeps_that_of_the_run(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serve(flawed) as server:
        go(server, dataset, out, max_tokens=5, tasks=["addition"])
        before = len(server.received)
        assert go(server, dataset, out, retry=("truncated",)).answered >= 1
        assert {each.body["max_tokens"] for each in server.received[before:]} == {5}


def test_a_failed_retry_does_not_replace_an_answer(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(400, "content_filter") if received.number else await flawed(received)

    out = tmp_path / "run"
    with serve(script) as server:
        go(server, dataset, out)
        assert go(server, dataset, out, retry=("truncated",)).errors == 1
    assert "1 + 1 is" in {response.text for response in read_run(out).responses.values()}
