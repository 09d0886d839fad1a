"""The page for all files, for some files and without responses."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from numbench.reporting.table_model import to_csv
from numbench.rescore.analysis import StudyAnalysis
from numbench.rescore.page import (
    CHANGES_HEADER,
    HEADER,
    change_rows,
    render,
    reproduced,
    score_rows,
)
from numbench.rescore.page_figures import FORMATS
from numbench.rescore.page_tables import files_csv
from numbench.tasks import TASKS
from tests.rescore.conftest import read
from tests.rescore.files import ADDITION, Row, write_benchmark, write_responses

COMMITTED = Path(__file__).parents[2] / "results" / "rescored-study"
REGENERATE = "run `numbench rescore` on the study's files and commit its output"


def _csv(study: StudyAnalysis) -> str:
    return to_csv(HEADER, list(score_rows(study)))


@pytest.fixture
def committed(whole: StudyAnalysis) -> StudyAnalysis:
    """The study's own files, if the committed page is made from the same files."""
    if not COMMITTED.is_dir():
        pytest.skip("the page is part of a checkout, not of an installed package")
    files = to_csv(("file", "task", "bytes", "sha256"), files_csv(whole))
    if (COMMITTED / "files.csv").read_text(encoding="utf-8") != files:
        pytest.skip("the committed page is made from other files than the available ones")
    return whole


@pytest.mark.slow
def test_committed_page_is_reproduced_from_the_files(committed: StudyAnalysis) -> None:
    page = (COMMITTED / "README.md").read_text(encoding="utf-8")
    assert render(committed) == page, REGENERATE
    assert _csv(committed) == (COMMITTED / "rescored.csv").read_text(encoding="utf-8"), REGENERATE
    changes = to_csv(CHANGES_HEADER, list(change_rows(committed)))
    assert changes == (COMMITTED / "changes.csv").read_text(encoding="utf-8"), REGENERATE


def test_committed_page_shows_the_committed_figures() -> None:
    if not COMMITTED.is_dir():
        pytest.skip("the page is part of a checkout, not of an installed package")
    page = (COMMITTED / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert len(links) == 6
    assert all((COMMITTED / path).is_file() for path in links)
    files = {path.name for path in (COMMITTED / "figures").iterdir()}
    assert files == {f"{Path(path).stem}.{form}" for path in links for form in FORMATS}


def test_page_is_reproducible(small: StudyAnalysis) -> None:
    assert render(small) == render(small)


def test_page_names_its_files_and_the_missing_configurations(
    small: StudyAnalysis,
) -> None:
    page = render(small)
    assert "2 benchmark files and 2 response files of 1 configuration." in page
    assert "| GPT 5 | maximal | `…_openai__gpt-5_re_high.csv` | Interval, Sorting, " in page
    assert "12 of the paper's 13 configurations" in page
    assert "Kimi K2 0905 (none)" in page


def test_published_and_exact_scores_are_marked(small: StudyAnalysis) -> None:
    page = render(small)
    # The paper prints 98.4 for GPT 5 on Add; these files give another score.
    assert "*98.4*†&nbsp;→&nbsp;**100.0** [43.9, 100.0]" in page
    assert "GPT 5 (maximal), Add, exact match: *98.4* published, 0.0 computed" in page
    assert reproduced(small) == (0, 3)


def test_model_outside_the_paper_has_no_published_score(tmp_path: Path) -> None:
    write_responses(tmp_path / "csv", "Addition", ADDITION[:2], "acme__a*b|<i>", "low")
    study = read(tmp_path / "csv", tmp_path / "runs")
    page = render(study)
    assert "| acme\\_\\_a\\*b\\|&lt;i&gt; | low | –&nbsp;→&nbsp;**100.0** [34.2, 100.0] |" in page
    assert "†" not in page
    assert reproduced(study) == (0, 0)


def test_page_without_responses_contains_only_the_label_audit(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", ADDITION)
    study = read(tmp_path / "csv", tmp_path / "runs")
    page = render(study)
    assert "1 of 4 published labels are wrong: Add 1 of 4" in page
    assert "These files contain no responses" in page
    assert "Why the scores change" not in page
    assert "13 of the paper's 13 configurations" in page
    assert _csv(study) == ",".join(HEADER) + "\n"


def test_page_without_a_wrong_label_has_no_example(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", ADDITION[1:])
    page = render(read(tmp_path / "csv", tmp_path / "runs"))
    assert "0 of 3 published labels are wrong." in page
    assert "The worst label" not in page


def test_single_task_is_sufficient(tmp_path: Path) -> None:
    rows = [Row("What is the maximum of the list [5, 3.5]?", "5", '{"answer": 5.0}')]
    write_responses(tmp_path / "csv", "MinMax", rows)
    page = render(read(tmp_path / "csv", tmp_path / "runs"))
    assert "0 benchmark files and 1 response file of 1 configuration" in page
    assert "**Exact scoring** changes exact match by (points): MinMax +100.0 to +100.0." in page


def test_changes_add_up_in_the_csv(small: StudyAnalysis) -> None:
    rows = list(csv.DictReader(io.StringIO(_csv(small))))
    assert len(rows) == len(small.scores) == 3
    for row in rows:
        changes = [Decimal(row[name]) for name in row if name.startswith("change_")]
        assert len(changes) == 4
        assert Decimal(row["study_scoring"]) + sum(changes) == Decimal(row["exact"])
        assert sum(changes) == Decimal(row["change"])


def test_std_has_a_score_with_either_convention(tmp_path: Path) -> None:
    """One answer by the population, one by the sample deviation."""
    question = "What is the std of the list [1, 3]?"
    rows = [
        Row(question, "1", '{"answer": 1}'),
        Row("What is the std of the list [1, 5]?", "2", '{"answer": 2.82842712474619}'),
    ]
    write_responses(tmp_path / "csv", "Std", rows)
    study = read(tmp_path / "csv", tmp_path / "runs")
    assert "| Std | GPT 5 (maximal) | 1 of 2 | 52.6 | **100.0** | 50.0 | **100.0** |" in render(
        study
    )
    values = [row["either_convention"] for row in csv.DictReader(io.StringIO(_csv(study)))]
    assert values == ["100.0000", "100.0000"]


def test_page_without_std_has_no_conventions(small: StudyAnalysis) -> None:
    assert "## Two conventions" not in render(small)
    rows = csv.DictReader(io.StringIO(_csv(small)))
    assert {row["either_convention"] for row in rows} == {""}


def test_page_contains_every_claim_with_three_results(small: StudyAnalysis) -> None:
    page = render(small)
    part = page[page.index("## The paper's conclusions") : page.index("### Pairwise comparisons")]
    assert part.count("*published, all 13*") == part.count("exact scoring, 1 available") == 8
    assert part.count("Interpreted as: ") == 8


def test_installed_plugin_task_does_not_change_the_page(
    small: StudyAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = render(small)
    monkeypatch.setitem(TASKS, "modulo", replace(TASKS["addition"], name="modulo"))
    assert render(small) == page
