"""A run with nothing but hostile responses: requested, reported and shown like any other."""

import csv
import json
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import numbench as nb
from numbench.dataset.store import write_dataset
from numbench.item_view import item_texts, select_items
from numbench.records import Item, ProtocolName
from numbench.tasks.items import make_item
from tests.scoring.hostile_texts import long_texts, short_texts
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

TEXTS = [*short_texts()[::11], *long_texts(4000)]

QUESTIONS = [
    ("addition", "+", ("{}", "2.25")),
    ("division", "/", ("{}", "7")),
    ("minmax", "maximum", ("{}", "-1", "2.5")),
    ("interval", "interval", ("{}", "1", "900")),
    ("sorting", "ascending", ("{}", "-1", "2.5")),
]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over a server that answers every question with the next hostile text."""
    folder = tmp_path_factory.mktemp("hostile")
    items: dict[str, list[Item]] = {}
    for number, (task, operator, operands) in zip(
        range(len(TEXTS)), cycle(QUESTIONS), strict=False
    ):
        numbers = tuple(operand.format(number + 3) for operand in operands)
        items.setdefault(task, []).append(make_item(task, operator, numbers, {}))
    write_dataset(
        folder / "data", items, name="data", generator="test", seed=1, split="test", settings={}
    )
    remaining = list(TEXTS)

    async def script(received: ReceivedRequest) -> Reply:
        text = remaining.pop()
        # A blank answer with visible tokens would be sent again.
        tokens = 9 if text.strip() else 0
        return servers.chat(text, usage={"prompt_tokens": 5, "completion_tokens": tokens})

    with serve(script) as server:
        nb.run("openai/hostile", base_url=server.url, dataset=folder / "data", out=folder / "run")
    assert not remaining
    return folder / "run"


@pytest.mark.parametrize("protocol", ["exact", "lenient", "paper"])
def test_hostile_responses_are_reported(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: ProtocolName
) -> None:
    if protocol != "exact":
        monkeypatch.setattr("numbench.reporting.figures.FIGURES", ())
    nb.report(run_folder, protocol=protocol, out=tmp_path)
    (run,) = json.loads((tmp_path / "report.json").read_text())["runs"]
    tasks = run["tasks"].values()
    assert sum(task["counted"] for task in tasks) == len(TEXTS)
    assert sum(sum(task["statuses"].values()) for task in tasks) == len(TEXTS)
    for task in tasks:
        assert 0 <= task["score"]["low"] <= task["score"]["value"] <= 100
    scores = pq.read_table(tmp_path / "scores.parquet")
    assert scores.num_rows == len(TEXTS)
    # Numbers with long exponents are not written out.
    assert max(len(text or "") for text in scores["parsed"].to_pylist()) < 100_000
    rows = list(csv.DictReader((tmp_path / "tables" / "coverage.csv").open()))
    assert sum(int(row["counted"]) for row in rows) == len(TEXTS)
    page = (tmp_path / "report.html").read_text()
    assert "<script>alert(1)</script>" not in page


def test_hostile_responses_are_shown(run_folder: Path) -> None:
    shown = list(item_texts(select_items(run_folder, protocol="lenient")))
    assert len(shown) == len(TEXTS) + len(QUESTIONS)
    assert all("\x1b" not in str(text) and "\x00" not in str(text) for text in shown)
    assert max(len(str(text)) for text in shown) < 100_000
