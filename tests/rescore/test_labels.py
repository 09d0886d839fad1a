"""The audit on the page, and the score that wrong labels leave to a perfect answer."""

from __future__ import annotations

import pytest

from bench.rescore.study import Study, shown

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


def test_an_oracle_loses_where_the_label_is_wrong(small: Study) -> None:
    found = {own.task: own for own in small.labels}
    assert (found["addition"].n, len(found["addition"].wrong)) == (4, 1)
    assert found["addition"].ceiling.exact_match == 75
    assert 75 < found["addition"].ceiling.score < 100
    assert found["addition"].largest_error == pytest.approx(0.0001 / 3.75)
    assert found["minmax"].ceiling.exact_match == 100
    assert found["minmax"].largest_error is None


def test_the_ceilings_of_the_published_labels(whole: Study) -> None:
    found = {
        own.task: (len(own.wrong), shown(own.ceiling.score), shown(own.ceiling.exact_match))
        for own in whole.labels
    }
    assert found == {task: KNOWN[task] for task in found}
