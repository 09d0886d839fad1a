"""The dataset card's PyTorch loader works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings

CARD = Path(__file__).parents[2] / "datasets" / "README.md"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_the_cards_loader_reads_every_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    torch = pytest.importorskip(
        "torch", reason="needs PyTorch: pip install 'numbench[local]', then make test"
    )
    settings = DatasetSettings("train", ("addition",), "train", 12_000, format="parquet")
    dataset = generate(settings, tmp_path / "datasets" / "train", shard_rows=4_000).dataset
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"((?:^    class Items.*\n)(?:^     .*\n)+)", CARD.read_text(), re.M)
    scope: dict[str, object] = {"torch": torch}
    exec(
        "from numbench.dataset.store import open_dataset\n" + re.sub("^    ", "", code, flags=re.M),
        scope,
    )
    items = scope["Items"]()  # type: ignore[operator]
    loader = torch.utils.data.DataLoader(items, batch_size=None, num_workers=workers)
    prompts = [row["prompt"] for row in loader]
    assert sorted(prompts) == sorted(item.prompt for item in dataset.by_task["addition"])
