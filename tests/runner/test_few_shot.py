"""Worked examples: correct validation items that share no operands with a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.dataset.store import open_dataset, write_dataset
from numbench.errors import BadInput
from numbench.journal import read_run
from numbench.records import Response
from numbench.runner.few_shot import example_messages, examples
from numbench.scoring.exact_protocol import score_exact
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import content_hash, split_of
from tests import servers
from tests.runner.test_run import _quick, dataset, go
from tests.servers import ReceivedRequest, Reply, serve

__all__ = ["_quick", "dataset"]


def test_examples_are_validation_items_with_well_formed_correct_answers() -> None:
    shown = examples(open_dataset("v1"), tuple(PAPER_TASKS), 8)
    assert shown.keys() == PAPER_TASKS.keys()
    for task, items in shown.items():
        assert len({item.id for item in items}) == 8
        for item, message in zip(items, example_messages(items)[1::2], strict=True):
            assert (item.task, split_of(item.operands)) == (task, "val")
            assert message.role == "assistant"
            score = score_exact(item, Response(item_id=item.id, text=message.content))
            assert (score.exact_match, score.rule) == (True, "json"), message.content


def test_examples_never_share_operands_with_a_question(
    tmp_path: Path,
) -> None:
    first, second, *_ = examples(open_dataset("v1"), ("addition",), 4)["addition"]
    other = write_dataset(
        tmp_path,
        {"addition": [first, second]},
        name="foreign",
        generator="somebody",
        seed=1,
        split="val",
        settings={"max_digits": 15},
    )
    (shown,) = examples(other, ("addition",), 4).values()
    received = {content_hash(item.operands) for item in (first, second)}
    assert not received & {content_hash(item.operands) for item in shown}
    assert len(shown) == 4


def test_examples_precede_every_question(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(received: ReceivedRequest) -> Reply:
        return servers.chat()

    with serve(script) as server:
        report = go(server, dataset, None, few_shot=2)
        assert report.path == Path("results/openai-some_default_small_2-shot")
        for received in server.received:
            roles = [message["role"] for message in received.body["messages"]]
            assert roles == ["system", *["user", "assistant"] * 2, "user"]
            told = [message["content"] for message in received.body["messages"]]
            assert told[-1] not in told[:-1]
        assert len({received.prompt for received in server.received}) == 10
        assert go(server, dataset, None, few_shot=2).completed == 0
        settings = read_run(report.path).info.settings
        assert settings["few_shot"] == 2
        assert len(str(settings["few_shot_sha256"])) == 64
        with pytest.raises(BadInput, match=r"few_shot 2, this one has 3"):
            go(server, dataset, report.path, few_shot=3)
        with pytest.raises(BadInput, match=r"few_shot 2, this one has None"):
            go(server, dataset, report.path)
