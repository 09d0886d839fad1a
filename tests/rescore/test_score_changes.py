"""What moved since the first version of the re-scored study, and why."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from numbench.rescore import score_changes as module
from numbench.rescore.analysis import StudyAnalysis
from numbench.rescore.page import render
from numbench.rescore.score_changes import ScoreChange
from tests.rescore.conftest import read
from tests.rescore.files import Row, write_responses

COLUMNS = (
    *("n", "ok", "unparseable", "empty", "truncated", "log_smape", "exact_match"),
    *("tokens", "tokens_unknown", "sha256"),
)
RIGHT = [
    Row("What is 1.5 + 2.25?", "3.75", '{"answer": 3.75}'),
    Row("What is 2 - 0.5?", "1.5", '{"answer": 1.5}'),
]
CUT = Row("What is 7 + 1?", "8", '{"answer":')


def _study(folder: Path, rows: Sequence[Row], tokens: Sequence[str]) -> Path:
    write_responses(folder / "csv", "Addition", rows)
    (path,) = (folder / "csv").iterdir()
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line, count in zip(lines, tokens, strict=True):
        line["tokens"] = count
        line["usage.completion_tokens"] = "" if count == "-1" else count
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def _changes(
    folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch, **earlier: object
) -> tuple[StudyAnalysis, list[ScoreChange]]:
    """Analyze the file as if `earlier` were its earlier results."""
    table = folder / "earlier.csv"
    values = {"sha256": sha256(path.read_bytes()).hexdigest(), **earlier}
    table.write_text(
        ",".join(COLUMNS) + "\n" + ",".join(str(values.get(c, "")) for c in COLUMNS) + "\n"
    )
    monkeypatch.setattr(module, "_EARLIER", table)
    module._earlier_results.cache_clear()
    try:
        study = read(path.parent, folder / "runs")
    finally:
        module._earlier_results.cache_clear()
    return study, list(study.score_changes)


def test_a_failed_request_moves_both_scores_by_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _study(tmp_path, [*RIGHT, CUT], ["7", "7", "-1"])
    before = {"n": 3, "ok": 2, "unparseable": 1, "log_smape": 66.6667, "exact_match": 66.6667}
    study, changes = _changes(tmp_path, path, monkeypatch, **before, tokens=7, tokens_unknown=1)
    assert [change.measure for change in changes] == ["log_smape", "exact_match"]
    for change in changes:
        assert (change.before, change.after) == (66.6667, 100)
        assert change.by_counting == pytest.approx(100 / 3)
        assert change.by_parsing == pytest.approx(0, abs=1e-4)
        assert change.reason == "1 failed request no longer counted as wrong"
    assert (
        "| Add | GPT 5 (maximal) | exact match | 1 failed request no longer counted as wrong | "
        "66.67 | 100.00 |"
    ) in render(study)


def test_an_answer_that_is_now_read_moves_the_scores_by_parsing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _study(tmp_path, RIGHT, ["7", "7"])
    before = {"n": 2, "ok": 1, "unparseable": 1, "log_smape": 50, "exact_match": 50}
    _, changes = _changes(tmp_path, path, monkeypatch, **before, tokens=7, tokens_unknown=0)
    assert [(c.by_counting, c.by_parsing) for c in changes] == [(0, 50), (0, 50)]
    assert {change.reason for change in changes} == {"1 more answer read"}


def test_known_tokens_and_truncated_responses_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _study(tmp_path, [*RIGHT, Row(CUT.prompt, CUT.label, "")], ["7", "7", "4096"])
    before = {"n": 3, "ok": 2, "empty": 1, "log_smape": 66.6667, "exact_match": 66.6667}
    _, changes = _changes(tmp_path, path, monkeypatch, **before, tokens=7, tokens_unknown=1)
    (change,) = changes
    assert (change.measure, change.before, change.after) == ("tokens", 7, 4110 / 3)
    assert change.by_counting == 4110 / 3 - 7
    assert change.reason == "1 response truncated instead of unreadable or empty; " + (
        "1 token count more known"
    )


def test_a_change_of_statuses_alone_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _study(tmp_path, [*RIGHT, Row(CUT.prompt, CUT.label, "hm")], ["7", "7", "4096"])
    before = {"n": 3, "ok": 2, "unparseable": 1, "log_smape": 66.66667, "exact_match": 66.66667}
    study, (change,) = _changes(
        tmp_path, path, monkeypatch, **before, tokens=1370, tokens_unknown=0
    )
    assert (change.measure, change.before, change.after) == ("statuses", None, None)
    assert change.reason == "1 response truncated instead of unreadable or empty"
    assert "| statuses only | 1 response truncated" in render(study)


def test_another_file_of_the_same_configuration_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _study(tmp_path, RIGHT, ["7", "7"])
    before = {"n": 2, "exact_match": 0, "tokens_unknown": 0}
    study, changes = _changes(tmp_path, path, monkeypatch, **before, sha256="0" * 64)
    assert changes == []
    assert "### What changed" not in render(study)


@pytest.mark.slow
def test_every_change_of_the_study_is_explained(whole: StudyAnalysis) -> None:
    for change in whole.score_changes:
        assert change.reason
        if change.before is not None and change.after is not None:
            assert change.by_counting is not None and change.by_parsing is not None
            effects = change.by_counting + change.by_parsing
            assert change.after - change.before == pytest.approx(effects)
