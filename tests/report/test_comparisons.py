"""Comparisons of runs, recomputed from the answers with plain loops."""

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numbench as nb
from numbench.dataset.settings import POOL_SIZE
from numbench.records import Answer
from numbench.reporting.comparisons import ALL, Comparisons, compare_runs
from numbench.reporting.data import ReportData
from numbench.reporting.digit_alignment import align_digits
from numbench.scoring import score_run
from tests.report import large_runs
from tests.support.case_tables import each_row

SIZE = 60
TASKS = ("addition", "mean", "std")
Z = 1.959963984540054


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> nb.Dataset:
    """A generated dataset: stratified by difficulty, and Mean and Std ask about the same lists."""
    folder = tmp_path_factory.mktemp("drawn")
    return nb.generate("drawn", tasks=TASKS, size=SIZE, out=folder / "drawn")


def write(folder: Path, data: nb.Dataset, says: Callable[[str, int], str | None]) -> Path:
    """Write a run; `says` returns a value for the task and the rank of difficulty, or nothing."""
    responses = []
    for task in TASKS:
        ranked = sorted(data.by_task[task], key=lambda item: item.difficulty.base10)
        for rank, item in enumerate(ranked):
            said = says(task, rank)
            if said is not None:
                text = f'{{"answer": {item.answer if said == "right" else said}}}'
                responses.append(nb.Response(item_id=item.id, text=text, finish_reason="stop"))
    return large_runs.write(folder, data, responses, TASKS)


@pytest.fixture(scope="module")
def runs(data: nb.Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[nb.ScoredRun]:
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(5)
    luck = {task: rng.random(SIZE) for task in TASKS}

    def model(strength: float, unanswered: int) -> Callable[[str, int], str | None]:
        def says(task: str, rank: int) -> str | None:
            if rank % 10 == unanswered:
                return None
            is_right = luck[task][rank] < strength - 0.6 * rank / SIZE
            return "right" if is_right else f"{1 + rank}.5"

        return says

    strengths = {"a": (1.3, 99), "b": (1.2, 3), "c": (0.7, 99), "d": (1.29, 4), "e": (1.0, 99)}
    return [score_run(write(folder / name, data, model(*each))) for name, each in strengths.items()]


@pytest.fixture(scope="module")
def comparisons(runs: list[nb.ScoredRun]) -> Comparisons:
    return compare_runs(runs)


def scores(run: nb.ScoredRun, task: str) -> dict[str, float]:
    return {row.item.id: 100 * row.score.log_smape for row in run.rows[task] if row.is_answered}


def differences(left: nb.ScoredRun, right: nb.ScoredRun, task: str) -> dict[str, float]:
    """Return the differences of the items that both answered, in the order of difficulty."""
    first, second = scores(left, task), scores(right, task)
    items = left.dataset.by_task[task]
    ranked = sorted(items, key=lambda item: item.difficulty.base10)
    both = [item.id for item in ranked if item.id in first and item.id in second]
    return {item_id: first[item_id] - second[item_id] for item_id in both}


def covariance_of_sums(first: list[float], second: list[float]) -> float:
    """Return the covariance under the sampling design, as docs/statistics.md defines it."""
    share = len(first) * (1 / SIZE - 1 / POOL_SIZE)
    steps = ([b - a for a, b in pairwise(values)] for values in (first, second))
    neighbors = sum(a * b for a, b in zip(*steps, strict=True)) / 2
    centered = ([value - fmean(values) for value in values] for values in (first, second))
    return share * neighbors + (1 - share) * sum(a * b for a, b in zip(*centered, strict=True))


def variance_of_sum(values: list[float]) -> float:
    return covariance_of_sums(values, values) * len(values) / (len(values) - 1)


def pseudo_items(values: list[float]) -> float:
    """Return what the pseudo-items add to the variance of the sum."""
    differing = [value**2 for value in values if abs(value) > 1e-8]
    return 2 * (sum(differing) + 100**2) / (len(differing) + 1)


def test_differences_and_intervals_follow_from_the_answers(
    runs: list[nb.ScoredRun], comparisons: Comparisons
) -> None:
    assert len(comparisons.differences) == 10 * (len(TASKS) + 1)
    for one in comparisons.differences:
        if one.task == ALL:
            continue
        values = list(differences(runs[one.left], runs[one.right], one.task).values())
        n = len(values)
        assert (one.items, one.difference) == (n, pytest.approx(fmean(values)))
        assert one.means[0] - one.means[1] == pytest.approx(one.difference)
        half = Z * (variance_of_sum(values) + pseudo_items(values)) ** 0.5 / n
        assert one.low == pytest.approx(max(one.difference - half, -100))
        assert one.high == pytest.approx(min(one.difference + half, 100))


def test_the_mean_over_tasks_counts_shared_lists_once(
    runs: list[nb.ScoredRun], comparisons: Comparisons
) -> None:
    one = comparisons.of(0, 2)
    assert one is not None and one.task == ALL
    by_task = {task: differences(runs[0], runs[2], task) for task in TASKS}
    assert one.difference == pytest.approx(fmean(fmean(d.values()) for d in by_task.values()))
    variance = sum(variance_of_sum(list(d.values())) for d in by_task.values())
    # Mean and Std ask about the same lists, here in the order of the lists of Std.
    items = {task: runs[0].dataset.by_task[task] for task in ("mean", "std")}
    mean_of = {item.operands: by_task["mean"][item.id] for item in items["mean"]}
    operands = {item.id: item.operands for item in items["std"]}
    std = by_task["std"]
    shared = [mean_of[operands[item_id]] for item_id in std]
    variance += 2 * covariance_of_sums(shared, list(std.values()))
    pseudo = pseudo_items([value for d in by_task.values() for value in d.values()])
    # The mean of three means of 60 items is one of 180 items.
    half = Z * (variance + pseudo) ** 0.5 / (3 * SIZE)
    assert (one.low, one.high) == pytest.approx((one.difference - half, one.difference + half))


def test_rank_sets_follow_from_all_pairs_and_tasks(
    runs: list[nb.ScoredRun], comparisons: Comparisons
) -> None:
    complete = {0, 2, 4}
    differences = [one for one in comparisons.differences if {one.left, one.right} <= complete]
    family = sorted(differences, key=lambda one: one.p)
    smallest, beaten = 0.0, set()
    for rank, one in enumerate(family):
        smallest = max(smallest, (len(family) - rank) * one.p)
        if smallest <= 0.05 and not one.low <= 0 <= one.high:
            pair = (one.left, one.right) if one.difference > 0 else (one.right, one.left)
            beaten.add((one.task, *pair))
    assert beaten
    data = ReportData(runs)
    order = [[one.scored for one in data.runs].index(run) for run in runs]
    for task in (*TASKS, ALL):
        assert data.ranks[task].keys() == {order[run] for run in complete}
        for run in complete:
            best = 1 + sum((task, other, run) in beaten for other in complete)
            worst = len(complete) - sum((task, run, other) in beaten for other in complete)
            assert data.ranks[task][order[run]] == (best, worst)
    assert data.ranks["all"][order[2]] == (3, 3)


def test_a_result_depends_on_its_two_runs_only(
    runs: list[nb.ScoredRun], comparisons: Comparisons
) -> None:
    alone = compare_runs([runs[3], runs[1]])
    for task in (*TASKS, ALL):
        turned, one = alone.of(1, 0, task), comparisons.of(1, 3, task)
        assert turned is not None and one is not None
        assert (turned.p, turned.items, turned.verdict) == (one.p, one.items, one.verdict)
        assert (turned.difference, turned.low, turned.high) == pytest.approx(
            (one.difference, one.low, one.high)
        )


def test_runs_with_different_tasks_are_compared_on_those_of_both(tmp_path: Path) -> None:
    data = large_runs.dataset(tmp_path)
    every = large_runs.run(tmp_path / "every", data, lambda t, n: n > 20)
    some = large_runs.run(tmp_path / "some", data, lambda t, n: n > 0, tasks=("minmax", "std"))
    one = large_runs.run(tmp_path / "one", data, lambda t, n: True, tasks=("std",), limit=30)
    result = compare_runs([score_run(folder) for folder in (every, some, one)])
    overall = result.of(0, 1)
    assert overall is not None and (overall.items, overall.task) == (80, ALL)
    # One common task: its mean is not tested a second time.
    single = result.of(1, 2)
    assert single is not None and (single.items, single.task) == (30, "std")
    ranked = ReportData([score_run(folder) for folder in (every, some, one)])
    indices = {run.model: index for index, run in enumerate(ranked.runs)}
    assert ranked.ranks["std"].keys() == {indices["every"], indices["some"]}
    assert not ranked.ranks["all"], "only one run has all tasks"


@each_row(__file__, "first_differences")
def test_the_first_difference_by_place_value(
    answer: Answer, truth: Answer, shift: int, at: int | None
) -> None:
    assert align_digits(answer, truth) == (shift, at)


plain = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=6).map(
    lambda value: f"{value.normalize():f}"
)


@given(plain, plain)
def test_both_lines_are_equal_up_to_the_first_difference(answer: str, truth: str) -> None:
    shift, at = align_digits(answer, truth)
    assert (at is None) == (Decimal(answer) == Decimal(truth))
    lines = [" " * max(0, shift) + answer, " " * max(0, -shift) + truth]
    points = {line.index(".") if "." in line else len(line) for line in lines}
    assert len(points) == 1
    if at is not None:
        one, other = (line if "." in line else f"{line}." for line in lines)
        one, other = one.ljust(at + 1, "0"), other.ljust(at + 1, "0")
        assert one[:at] == other[:at] and one[at] != other[at]
