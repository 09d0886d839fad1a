"""The examples in docs/records.md are valid records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from numbench import records
from numbench.tasks.items import make_item

DOCS = Path(__file__).parent.parent / "docs" / "records.md"
EXAMPLES = re.findall(r"^## (\w+).*?```json\n(.*?)```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
KINDS = {
    "Item": records.Item,
    "Response": records.Response,
    "Score": records.Score,
    "Manifest": records.Manifest,
    "Run": records.RunInfo,
    "Round": records.Round,
    "Request": records.RecordedRequest,
}


def test_every_record_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize(("name", "text"), EXAMPLES)
def test_an_example_has_exactly_the_fields_of_its_record(name: str, text: str) -> None:
    record = msgspec.json.decode(text, type=KINDS[name])
    assert json.loads(msgspec.json.encode(record)) == json.loads(text)


def test_the_documented_item_equals_the_generated_one() -> None:
    item = msgspec.json.decode(dict(EXAMPLES)["Item"], type=records.Item)
    assert make_item(item.task, item.operator, item.operands, item.params) == item
