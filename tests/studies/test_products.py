"""The page about products of 8-bit integers, from its stored logs and from planted ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studies.products.__main__ import RESULTS, questions_to, ratio, read_logs, render
from tests.studies.files import assert_is_committed

ROOT = Path(__file__).parents[2]


def test_the_committed_page_comes_out_of_the_stored_logs() -> None:
    assert_is_committed(render(ROOT / RESULTS), ROOT / RESULTS)


def plant(folder: Path, encoding: str, seed: int, reached: int | None) -> None:
    """Store a training that reaches 50% at some validation of ten, or never."""
    run = folder / f"multiplication-8-{encoding}-s{seed}"
    run.mkdir()
    entries: list[dict[str, object]] = [{"step": 0, "event": "started"}]
    for number in range(1, 11):
        exact = 0.6 if reached and number >= reached else 0.1
        tasks = {"multiplication": {"exact": exact}}
        entries.append({"step": number, "questions": 100 * number, "tasks": tasks})
    (run / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_ratios_are_paired_by_seed_and_bounded_where_a_target_is_missed(tmp_path: Path) -> None:
    for seed, (ours, same, missed) in enumerate([(1, 2, 4), (2, 4, None), (3, 6, None)], 1):
        plant(tmp_path, "bittoken", seed, ours)
        plant(tmp_path, "digit", seed, same)
        plant(tmp_path, "fone", seed, missed)
    logs = read_logs(tmp_path)
    assert ratio(logs, "digit", 50) == ("× 2.0 (2.00–2.00)", pytest.approx(2.0))
    text, low = ratio(logs, "fone", 50)
    # 4, 10 / 2 and 10 / 3: the logarithms have mean 1.4 and standard deviation 0.203.
    assert text == "≥ × 4.1 (≥ 2.45)" and low == pytest.approx(2.45, abs=0.01)


def test_a_single_validation_above_the_target_does_not_count(tmp_path: Path) -> None:
    plant(tmp_path, "bittoken", 1, 10)
    assert questions_to(read_logs(tmp_path), 50) is None
