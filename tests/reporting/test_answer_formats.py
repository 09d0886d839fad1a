"""Format compliance and numeracy in the report: exact match under `exact` and `lenient`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numbench.cli import app
from numbench.records import ProtocolName
from numbench.reporting import report
from tests.reporting import runs

pytestmark = pytest.mark.usefixtures("only_one_figure")


def coverage(out: Path) -> dict[str, dict[str, str]]:
    text = (out / "tables" / "coverage.csv").read_text()
    return {row["Task"]: row for row in csv.DictReader(text.splitlines())}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three of four sums are right: one as requested, one in a box, one in a sentence."""
    answers = runs.all_right()
    for index, text in ((0, "\\boxed{10}"), (1, "The sum is 20."), (2, "The sum is 31.")):
        answers[f"addition-{index}"] = runs.said("addition", index, text)
    answers["multiplication-0"] = runs.said("multiplication", 0, "11 or 12")
    runs.run(tmp_path / "run", runs.dataset(tmp_path), answers)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("protocol", "score", "statuses"),
    [("exact", 25.0, {"ok": 1, "unparseable": 3}), ("lenient", 75.0, {"ok": 4})],
)
def test_report_shows_exact_match_with_and_without_other_formats(
    run: Path, tmp_path: Path, protocol: ProtocolName, score: float, statuses: dict[str, int]
) -> None:
    done = report([run], protocol, out=tmp_path / "out")
    rows = coverage(tmp_path / "out")
    assert (rows["Add"]["exact"], rows["Add"]["lenient"]) == ("25.0", "75.0")
    assert (rows["Mult"]["exact"], rows["Mult"]["lenient"]) == ("75.0", "75.0")
    (summary,) = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    addition = summary["tasks"]["addition"]
    assert addition["exact_match"]["value"] == score
    assert addition["lenient_exact_match"] == 75.0
    assert addition["statuses"] == statuses
    assert f"protocol:{protocol}|" in addition["signature"]
    consequence = {"exact": "scored as incorrect", "lenient": "read nevertheless"}[protocol]
    assert (
        f"GPT 5 (minimal): answers that only the protocol lenient reads, {consequence} "
        "(3: Add 3); with them, exact match is Add 75.0 instead of 25.0." in done.warnings
    )


def test_paper_protocol_has_no_other_formats(run: Path, tmp_path: Path) -> None:
    done = report([run], "paper", out=tmp_path / "out")
    assert {(row["exact"], row["lenient"]) for row in coverage(tmp_path / "out").values()} == {
        ("", "")
    }
    (summary,) = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    assert summary["tasks"]["addition"]["lenient_exact_match"] is None
    assert not any("lenient" in warning for warning in done.warnings)


def test_no_warning_if_all_answers_have_the_format(tmp_path: Path) -> None:
    runs.run(tmp_path / "run", runs.dataset(tmp_path), runs.all_right())
    done = report([tmp_path / "run"], out=tmp_path / "out")
    assert not any("lenient" in warning for warning in done.warnings)


def test_show_reads_other_formats_with_the_protocol_lenient(run: Path) -> None:
    def shown(*options: str) -> str:
        result = CliRunner().invoke(app, ["show", str(run), "--tasks", "addition", *options])
        assert result.exit_code == 0, result.output
        return result.output

    assert shown().count("exact match") == 1
    assert shown("--protocol", "lenient").count("exact match") == 3
    assert "4 of 4" not in shown("--protocol", "lenient", "--kind", "other")
