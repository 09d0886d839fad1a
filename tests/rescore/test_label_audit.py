"""The label audit and the ceiling of scores that wrong labels cause."""

from __future__ import annotations

import pytest

from numbench.rescore.analysis import StudyAnalysis, format_score

pytestmark = pytest.mark.slow

KNOWN = {
    "addition": (2, "100.0", "99.6"),
    "multiplication": (5, "100.0", "99.0"),
    "division": (1, "100.0", "99.8"),
    "exponentiation": (30, "98.6", "94.0"),
    "mean": (130, "96.1", "74.0"),
    "std": (213, "84.0", "57.4"),
    "minmax": (0, "100.0", "100.0"),
    "interval": (0, "100.0", "100.0"),
    "sorting": (0, "100.0", "100.0"),
}


def test_wrong_labels_lower_the_score_of_an_oracle(small: StudyAnalysis) -> None:
    audits = {audit.task: audit for audit in small.labels}
    assert (audits["addition"].n, len(audits["addition"].wrong)) == (4, 1)
    assert audits["addition"].ceiling.exact_match == 75
    assert 75 < audits["addition"].ceiling.score < 100
    assert audits["addition"].largest_error == pytest.approx(0.0001 / 3.75)
    assert audits["minmax"].ceiling.exact_match == 100
    assert audits["minmax"].largest_error is None


@pytest.mark.slow
def test_ceilings_of_the_published_labels(whole: StudyAnalysis) -> None:
    ceilings = {
        audit.task: (
            len(audit.wrong),
            format_score(audit.ceiling.score),
            format_score(audit.ceiling.exact_match),
        )
        for audit in whole.labels
    }
    assert ceilings
    assert ceilings == {task: KNOWN[task] for task in ceilings}
