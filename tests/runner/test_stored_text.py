"""An answer is stored as it arrived, and interpreted when it is read."""

from pathlib import Path

import msgspec

from numbench.journal.run_folder import read_run
from numbench.records import Response
from numbench.scoring import score_run
from numbench.verification import answer_defect
from tests.support import servers
from tests.support.case_tables import read_lines
from tests.support.runs import KEY, go
from tests.support.servers import ReceivedRequest, Reply, serve

TEXTS = {
    "1 + 1": ('<think>1 and 1</think>{"answer": 2}', None, "ok", None),
    "2 + 1": ("<think>2 and 1 and then I", None, "truncated", "truncated"),
    "3 + 1": ("<think>3 and 1 and then I", "stop", "empty", "empty"),
    "4 + 1": ("<think>4 and 1</think>", "stop", "empty", "empty"),
    "5 + 1": (f"<think>the key is {KEY}</think> 6", "stop", "ok", None),
}
"""By question: text and finish reason of the server, the status, and what `--retry` calls it."""


def test_thinking_stays_in_the_stored_text_and_is_separated_when_it_is_scored(
    dataset: Path, tmp_path: Path
) -> None:
    def expected(prompt: str) -> tuple[str, str | None, str, str | None]:
        return next(value for numbers, value in TEXTS.items() if numbers in prompt)

    async def script(received: ReceivedRequest) -> Reply:
        text, finish, _, _ = expected(received.prompt)
        return servers.chat(text, finish=finish)

    out = tmp_path / "run"
    with serve(script) as server:
        go(server, dataset, out, tasks=["addition"])
        rows = score_run(out).rows["addition"]
        stored = read_run(out).responses
        for row in rows:
            text, _, status, defect = expected(row.item.prompt)
            raw = stored[row.item.id]
            assert raw.text == text.replace(KEY, "[key]")
            assert raw.reasoning_text is None and row.response is not None
            assert "<think>" not in row.response.text and row.response.reasoning_text
            assert row.score.status == status and answer_defect(raw) == defect
            assert row.score.exact_match is (status == "ok")
        assert go(server, dataset, out, tasks=["addition"], retry=("truncated",)).answered == 1
        assert go(server, dataset, out, tasks=["addition"], retry=("empty",)).answered == 2


def test_what_version_0_3_0_wrote_into_extra_has_fields_now() -> None:
    (notes,) = read_lines(__file__, "notes_of_0_3_0")
    line = msgspec.json.encode({"item_id": "mean-1", "extra": notes | {"id": "chat-1"}})
    response = msgspec.json.decode(line, type=Response)
    assert {name: getattr(response, name) for name in notes} == notes
    assert response.extra == {"id": "chat-1"}
    assert msgspec.json.decode(msgspec.json.encode(response), type=Response) == response
