"""Worked examples: from the validation split, right, and never about a question's numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset.store import open_dataset, write_dataset
from bench.errors import BadInput
from bench.journal import read_run
from bench.records import Response
from bench.runner.few_shot import examples, turns
from bench.scoring.exact import score_exact
from bench.tasks import TASKS
from bench.tasks.items import content, split_of
from tests import servers
from tests.servers import Asked, Reply, serve
from tests.test_runner import _quick, dataset, go

__all__ = ["_quick", "dataset"]


def test_examples_are_validation_items_that_the_scorer_finds_right_and_well_formed() -> None:
    shown = examples(open_dataset("v1"), tuple(TASKS), 8)
    assert shown.keys() == TASKS.keys()
    for task, items in shown.items():
        assert len({item.id for item in items}) == 8
        for item, said in zip(items, turns(items)[1::2], strict=True):
            assert (item.task, split_of(item.operands)) == (task, "val")
            assert said.role == "assistant"
            score = score_exact(item, Response(item_id=item.id, text=said.content))
            assert (score.exact_match, score.rule) == (True, 1), said.content


def test_examples_never_have_the_numbers_of_a_question_even_of_a_foreign_dataset(
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
    asked = {content(item.operands) for item in (first, second)}
    assert not asked & {content(item.operands) for item in shown}
    assert len(shown) == 4


def test_a_run_with_examples_shows_them_before_every_question(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(asked: Asked) -> Reply:
        return servers.chat()

    with serve(script) as server:
        report = go(server, dataset, None, few_shot=2)
        assert report.path == Path("results/openai-some_default_small_2-shot")
        for asked in server.asked:
            roles = [message["role"] for message in asked.body["messages"]]
            assert roles == ["system", *["user", "assistant"] * 2, "user"]
            told = [message["content"] for message in asked.body["messages"]]
            assert told[-1] not in told[:-1]
        assert len({asked.prompt for asked in server.asked}) == 10
        assert go(server, dataset, None, few_shot=2).asked == 0
        settings = read_run(report.path).info.settings
        assert settings["few_shot"] == 2
        assert len(str(settings["few_shot_sha256"])) == 64
        with pytest.raises(BadInput, match=r"few_shot 2, this one has 3"):
            go(server, dataset, report.path, few_shot=3)
        with pytest.raises(BadInput, match=r"few_shot 2, this one has None"):
            go(server, dataset, report.path)


@pytest.mark.parametrize(
    ("count", "said"), [(-1, "--few-shot -1: give 0 to 64"), (65, "--few-shot 65")]
)
def test_a_senseless_number_of_examples_is_refused(count: int, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        examples(open_dataset("v1"), ("addition",), count)


def test_the_same_dataset_gives_the_same_examples() -> None:
    first, second = (examples(open_dataset("v1"), ("mean", "interval"), 3) for _ in range(2))
    assert first == second


def test_arithmetic_takes_no_examples(dataset: Path, tmp_path: Path) -> None:
    with serve(servers.garbage) as server, pytest.raises(BadInput, match="leave out --few-shot"):
        go(server, dataset, tmp_path / "r", model="baseline/float64", base_url=None, few_shot=1)
