"""The figure of the page has a group per computation, and a dot per run."""

from __future__ import annotations

from random import Random

from numbench.forensics.calculator import calculator_evidence
from numbench.forensics.explanations import explain
from numbench.forensics.findings import RunFindings
from numbench.forensics_page.analysis import AnalyzedRun
from numbench.forensics_page.page_figures import draw, match_count, match_counts, shown_alternatives
from numbench.plot_style import plot_style
from tests.forensics.simulated import unrelated_answers, with_planted
from tests.reporting.figure_checks import assert_legible, texts


def analyzed_runs() -> list[AnalyzedRun]:
    random = Random(0)
    answers = unrelated_answers(random)
    planted = with_planted(answers, "std", "convention", 0.2, random)
    return [
        AnalyzedRun(
            name, "v1", RunFindings(explain([known])[0], calculator_evidence(known)), [], []
        )
        for name, known in zip("ab", (answers, planted), strict=True)
    ]


def test_planted_computation_has_a_line_above_chance() -> None:
    runs = analyzed_runs()
    assert shown_alternatives(runs) == ["float64", "convention"]
    without, count = (match_count(run, "convention") for run in runs)
    assert without and not without.is_significant
    assert count and count.is_significant and count.matches > 10 * count.expected
    with plot_style():
        figure = match_counts(runs)
        assert_legible(figure)
    shown = {text.get_text() for text in texts(figure)}
    assert {"the sample deviation (divisor n − 1)", "float64 arithmetic", "a", "b"} <= shown


def test_the_same_runs_give_the_same_files() -> None:
    runs = analyzed_runs()
    assert draw(runs) == draw(runs)
    assert draw([]) == {}
