"""Scores of a run folder: selection, means, counts and signatures."""

import tracemalloc
from pathlib import Path

import pytest
from msgspec.structs import replace

from numbench._version import __version__
from numbench.core import jsonl
from numbench.dataset.store import PUBLISHED_LABELS, Dataset, PublishedLabel, write_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import write_run
from numbench.records import DatasetRef, Failure, Response, Usage
from numbench.scoring import TaskSummary, score_run, signature, summarize
from numbench.scoring.scored_run import counted_rows
from numbench.tasks.items import make_item
from tests.support.runs import INFO

SUMS = [make_item("addition", "+", (str(n), "0.5"), {}) for n in range(6)]
LETTERS = [make_item("interval", "interval", (str(n), "1", "3"), {}) for n in range(3)]


def _dataset(path: Path, name: str = "tiny") -> Dataset:
    items = {"addition": SUMS, "interval": LETTERS}
    return write_dataset(path, items, name=name, generator="test", seed=1, split="test",
                         settings={})  # fmt: skip


def _run(
    folder: Path,
    responses: list[Response],
    *,
    tasks: tuple[str, ...] = ("addition",),
    limit: int | None = None,
    model: str = "gpt-5",
    reasoning: str = "minimal",
    imported: bool = True,
) -> Path:
    dataset = _dataset(folder / "dataset")
    ref = DatasetRef(name="tiny", path="../dataset", sha256=dataset.manifest.sha256)
    source = "imported" if imported else "measured"
    info = replace(INFO, model=model, reasoning=reasoning, dataset=ref, tasks=tasks, limit=limit,
                   settings={}, source=source)  # fmt: skip
    write_run(folder / "run", info, responses)
    return folder / "run"


def _response(
    index: int, text: str, generated: int | None = None, study_tokens: int | None = None
) -> Response:
    return Response(
        item_id=SUMS[index].id,
        text=text,
        usage=Usage(generated=generated),
        extra={} if study_tokens is None else {"study_tokens": study_tokens},
    )


def _mixed() -> list[Response]:
    """Correct, correct in another form, wrong, unparseable, failed; none for the sixth item."""
    return [
        _response(0, '{"answer": 0.5}', 10, 30),
        _response(1, "1.5", 20, -1),
        _response(2, '{"answer": -2.5}', None, 500),
        _response(3, "no idea"),
        Response(item_id=SUMS[4].id, error=Failure(kind="item", message="HTTP 400")),
    ]


def test_a_scored_run_holds_no_texts(tmp_path: Path) -> None:
    length = 1_000_000
    folder = _run(tmp_path, [_response(n, "x" * length) for n in range(6)])
    score_run(folder)
    tracemalloc.start()
    run = score_run(folder)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < length
    assert [len(row.response.text) for row in run.rows["addition"] if row.response] == [length] * 6
    assert run.rows["addition"][-1].item == SUMS[5]
    assert [row.item for row in run.rows["addition"][1:5:2]] == [SUMS[1], SUMS[3]]


def test_exact_means_leave_out_only_unanswered_items(tmp_path: Path) -> None:
    cell = summarize(score_run(_run(tmp_path, _mixed())))["addition"]
    assert cell == TaskSummary(
        n=6,
        counted=4,
        score=50.0,
        exact_match=50.0,
        by_value=None,
        tokens=15.0,
        tokens_unknown=2,
        statuses={"ok": 3, "unparseable": 1, "error": 1, "missing": 1},
        compliance=50.0,
    )


def test_paper_means_count_every_item(tmp_path: Path) -> None:
    cell = summarize(score_run(_run(tmp_path, _mixed()), "paper"))["addition"]
    assert (cell.n, cell.counted, cell.compliance) == (6, 6, None)
    assert cell.exact_match == pytest.approx(100 * 2 / 6)
    assert cell.tokens == pytest.approx((30 - 1 + 500) / 3)


def test_paper_means_count_only_the_first_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numbench.scoring.paper_protocol.ITEMS_PER_TASK", 2)
    run = score_run(_run(tmp_path, _mixed()), "paper")
    assert [row.item for row in counted_rows(run, "addition")] == SUMS[:2]
    assert (summarize(run)["addition"].n, summarize(run)["addition"].counted) == (6, 2)
    assert len(counted_rows(run._replace(protocol="exact"), "addition")) == 4


def test_paper_tokens_are_those_that_the_study_averaged(tmp_path: Path) -> None:
    outliers = _run(tmp_path / "a", _mixed(), model="gemini-2.5-flash", reasoning="none")
    assert summarize(score_run(outliers, "paper"))["addition"].tokens == pytest.approx(29 / 2)
    measured = _run(tmp_path / "b", _mixed(), imported=False)
    assert summarize(score_run(measured, "paper"))["addition"].tokens == 15


def test_only_the_paper_protocol_uses_published_labels(tmp_path: Path) -> None:
    folder = _run(tmp_path, [_response(0, '{"answer": 0.5}')], limit=1)
    labels = tmp_path / "dataset" / PUBLISHED_LABELS
    labels.write_bytes(jsonl.encode(PublishedLabel(SUMS[0].id, "0.75")))
    assert summarize(score_run(folder, "paper"))["addition"].exact_match == 0
    assert summarize(score_run(folder, "exact"))["addition"].exact_match == 100


def test_signature_describes_how_a_score_was_made(tmp_path: Path) -> None:
    run = score_run(_run(tmp_path, _mixed()))
    data = run.dataset.manifest.sha256[:6]
    assert signature(run, "addition") == (
        f"numbench:{__version__}|data:tiny@{data}|prompt:paper|protocol:exact|n:6|model:gpt-5|"
        "reasoning:minimal"
    )


def test_another_dataset_and_a_missing_task_are_named(tmp_path: Path) -> None:
    folder = _run(tmp_path, _mixed())
    other = write_dataset(tmp_path / "other", {"addition": SUMS[:1]}, name="other",
                          generator="test", seed=1, split="test", settings={})  # fmt: skip
    with pytest.raises(BadInput, match="answers dataset 'tiny'"):
        score_run(folder, dataset=other)
    assert score_run(folder, dataset=Dataset(tmp_path / "dataset")).dataset.name == "tiny"
    with pytest.raises(BadInput, match=r"task 'modulo' is not installed, or not in the dataset"):
        score_run(_run(tmp_path / "modulo", [], tasks=("addition", "modulo")))
