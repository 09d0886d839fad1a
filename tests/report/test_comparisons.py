"""Runs compared on the items they share: figures by hand, and what is said of what is not."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.report import figures, report
from bench.report.comparisons import OVERALL, compare_runs, verdict
from bench.scoring import score_run
from bench.stats.mcnemar import mcnemar
from bench.stats.paired import Difference
from tests.report import longer, runs

PAIR = ("addition", "minmax")


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    files = dict.fromkeys(figures.FORMATS, b"figure")
    monkeypatch.setattr(figures, "rendered", lambda figure: files)


def rows(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def of_task(found: Sequence[dict[str, str]], task: str, measure: str) -> dict[str, str]:
    (row,) = (row for row in found if (row["Task"], row["Measure"]) == (task, measure))
    return row


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "report.json").read_text())["comparisons"]
    return found


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Right: `good` all but items 0 and 1, `poor` all but 1 to 14; 39 unanswered by `poor`."""
    data = longer.dataset(tmp_path, PAIR)
    good = longer.run(tmp_path / "runs" / "good", data, lambda _, n: n > 1, tasks=PAIR)

    def poor(task: str, place: int) -> bool | None:
        return None if place == 39 else place not in range(1, 15)

    return [good, longer.run(tmp_path / "runs" / "poor", data, poor, tasks=PAIR)]


def test_a_row_holds_what_the_pairs_of_items_say(two: list[Path], tmp_path: Path) -> None:
    report(two, out=tmp_path / "out")
    found = rows(tmp_path / "out", "comparisons")
    assert [(row["Task"], row["Measure"]) for row in found] == [
        ("Add", "log-sMAPE"),
        ("MinMax", "exact match"),
        ("Add", "exact match"),
    ]
    row = of_task(found, "MinMax", "exact match")
    assert (row["A"], row["B"], row["Items"]) == ("good", "poor", "39")
    assert (row["Only A right"], row["Only B right"]) == ("13", "1")
    assert (row["A score"], row["B score"], row["Difference"]) == ("94.87", "64.10", "30.77")
    assert float(row["p"]) == pytest.approx(mcnemar(13, 1), rel=0.05)
    assert float(row["Low"]) < 30.77 < float(row["High"])
    assert row["Verdict"] == "better"
    add = of_task(found, "Add", "log-sMAPE")
    # A wrong 7 for 1000 + n keeps a little log-sMAPE: lg(993 / 1007) / -15 at the first item.
    assert float(add["A score"]) == pytest.approx(100 * (37 + 2 * 0.000405) / 39, abs=0.01)
    assert (add["Items"], add["Only A right"], add["Verdict"]) == ("39", "13", "better")
    # Of 2^14 ways to swap, 4 are as extreme: none or item 0 alone against all others, and back.
    assert float(add["p"]) == pytest.approx(4 / 2**14, abs=0.0005)


def test_holm_is_over_the_tasks_of_a_pair_and_over_the_pairs_of_a_task(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path)
    wrong = {"a": 0, "b": 9, "c": 10}
    folders = [
        longer.run(tmp_path / "runs" / name, data, lambda t, n, k=k: n >= k or t != "minmax")  # type: ignore[misc]
        for name, k in wrong.items()
    ]
    found = compare_runs([score_run(folder) for folder in folders])
    minmax = [c for c in found.contrasts if c.task == "minmax"]
    p = [c.found.p for c in minmax if c.found]
    assert p == [mcnemar(9, 0), mcnemar(10, 0), 1.0]
    # Nine tasks and their mean; the other eight tests of tasks have p 1.
    (overall,) = (c.found for c in found.contrasts if c.task == OVERALL and c.second == 1)
    assert overall
    assert minmax[0].p_tasks == max(min(10 * min(p[0], overall.p), 1.0), 9 * p[0])
    assert [c.p_pairs for c in minmax] == [2 * p[0], 3 * p[1], 1.0]
    assert [ranks["minmax"] for ranks in found.ranks] == [1, 2, 2]
    assert [ranks["addition"] for ranks in found.ranks] == [1, 1, 1]


def test_a_difference_within_noise_is_no_rank(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path, PAIR)
    folders = [
        longer.run(tmp_path / "runs" / str(wrong), data, lambda _, n, w=wrong: n >= w, tasks=PAIR)  # type: ignore[misc]
        for wrong in (3, 0, 6)
    ]
    report(folders, out=tmp_path / "out")
    # Six of forty would be enough for one test, not for three pairs or two tasks.
    minmax = [row for row in rows(tmp_path / "out", "comparisons") if row["Task"] == "MinMax"]
    assert [float(row["p"]) for row in minmax] == [0.25, 0.25, 0.031]
    assert {row["Verdict"] for row in minmax} == {"no difference shown"}
    found = rows(tmp_path / "out", "ranks")
    assert [(row["Model"], row["Add"], row["MinMax"]) for row in found] == [
        ("3", "1", "1"),
        ("0", "1", "1"),
        ("6", "1", "1"),
    ]
    assert {(row["Mult"], row["Mean of tasks"]) for row in found} == {("", "")}


def test_ranks_go_by_the_headline_metric_alone(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path, ("addition",))

    def near(_: str, place: int) -> bool | str:
        return f'{{"answer": {1000 + place}.001}}' if place < 35 else True

    # `near` has fewer answers right, but as many digits.
    folders = [
        longer.run(tmp_path / "runs" / "far", data, lambda _, n: n < 20, tasks=("addition",)),
        longer.run(tmp_path / "runs" / "near", data, near, tasks=("addition",)),
    ]
    report(folders, out=tmp_path / "out")
    score, match = rows(tmp_path / "out", "comparisons")
    assert (score["Only A right"], score["Only B right"]) == ("20", "5")
    assert (score["Verdict"], match["Verdict"]) == ("no difference shown", "better")
    assert [row["Add"] for row in rows(tmp_path / "out", "ranks")] == ["1", "1"]


@pytest.mark.parametrize(
    ("p", "low", "high", "said"),
    [
        (0.05, 0.1, 2.0, "better"),
        (0.01, -2.0, -0.1, "worse"),
        (0.051, 0.1, 2.0, "no difference shown"),
        (0.01, -0.1, 2.0, "no difference shown"),
        (0.01, 0.0, 2.0, "no difference shown"),
        (None, 0.1, 2.0, "no difference shown"),
    ],
)
def test_a_verdict_needs_p_and_an_interval_without_0(
    p: float | None, low: float, high: float, said: str
) -> None:
    found = Difference(40, (low + high) / 2, low, high, 0.01, None)
    assert verdict(found, p) == said
    assert verdict(None, p) == "no difference shown"


def test_the_mean_of_tasks_needs_all_nine(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path)
    folders = [
        longer.run(tmp_path / "runs" / "all", data, lambda t, n: t != "interval" or n >= 20),
        longer.run(tmp_path / "runs" / "some", data, lambda t, n: True, tasks=PAIR),
        longer.run(tmp_path / "runs" / "poor", data, lambda t, n: n >= 30),
    ]
    report(folders, out=tmp_path / "out")
    whole, some, poor = rows(tmp_path / "out", "overall")
    assert (whole["Tasks"], whole["Mean of tasks"], whole["Rank"]) == ("9 of 9", "94.4", "1")
    assert float(whole["Low"]) < 94.4 < float(whole["High"])
    assert (some["Tasks"], some["Mean of tasks"], some["Low"], some["Rank"]) == (
        "2 of 9",
        *[""] * 3,
    )
    assert (poor["Rank"], poor["Tasks"]) == ("2", "9 of 9")
    found = summary(tmp_path / "out")
    assert found["runs"][0]["overall"]["value"] == pytest.approx(100 * 8.5 / 9)
    assert [run["rank"] for run in found["runs"]] == [1, None, 2]
    (mean,) = (pair for pair in found["pairs"] if pair["task"] == OVERALL and pair["items"])
    assert (mean["items"], mean["verdict"], mean["only_a_right"]) == (360, "better", None)


def test_runs_on_other_data_are_not_paired_and_that_is_said(tmp_path: Path) -> None:
    data, other = longer.dataset(tmp_path), longer.dataset(tmp_path, PAIR, name="other")
    folders = [
        longer.run(tmp_path / "runs" / "a", data, lambda t, n: True),
        longer.run(tmp_path / "runs" / "b", other, lambda t, n: False, tasks=PAIR),
        longer.run(tmp_path / "runs" / "c", data, lambda t, n: False),
    ]
    report(folders, out=tmp_path / "out")
    assert {(row["A"], row["B"]) for row in rows(tmp_path / "out", "comparisons")} == {("a", "c")}
    ranks = rows(tmp_path / "out", "ranks")
    assert [row["Add"] for row in ranks] == ["1", "", "2"]
    assert summary(tmp_path / "out")["pairs_not_compared"] == 2
    for name in ("comparisons", "ranks", "overall"):
        text = (tmp_path / "out" / "tables" / f"{name}.md").read_text()
        assert "2 pairs of runs answer different datasets: not compared" in text


def test_a_shorter_run_is_paired_on_its_items(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path, PAIR)
    long = longer.run(tmp_path / "runs" / "long", data, lambda _, n: n < 10, tasks=PAIR)
    short = longer.run(tmp_path / "runs" / "s", data, lambda _, n: True, tasks=PAIR, limit=10)
    report([long, short], out=tmp_path / "out")
    for row in rows(tmp_path / "out", "comparisons"):
        assert (row["Items"], row["A score"], row["Difference"]) == ("10", "100.00", "0.00")


def test_runs_without_common_answers_have_no_figures(tmp_path: Path) -> None:
    data = longer.dataset(tmp_path, ("minmax",))
    for name, odd in (("a", 0), ("b", 1)):
        longer.run(tmp_path / "runs" / name, data, lambda t, n, o=odd: n % 2 == o or None,  # type: ignore[misc]
                   tasks=("minmax",))  # fmt: skip
    report([tmp_path / "runs"], out=tmp_path / "out")
    (row,) = rows(tmp_path / "out", "comparisons")
    assert (row["Items"], row["Difference"], row["p"], row["p over pairs"]) == ("0", "", "", "")
    assert row["Verdict"] == "no difference shown"
    assert [row["MinMax"] for row in rows(tmp_path / "out", "ranks")] == ["", ""]
    # The paper protocol counts what is missing as wrong, so there all items are common.
    report([tmp_path / "runs"], "paper", out=tmp_path / "paper")
    (row,) = rows(tmp_path / "paper", "comparisons")
    assert (row["Items"], row["Only A right"], row["Only B right"]) == ("40", "20", "20")


def test_the_order_of_runs_changes_no_figure(two: list[Path], tmp_path: Path) -> None:
    third = longer.run(tmp_path / "runs" / "x", longer.dataset(tmp_path, PAIR),
                       lambda _, n: n % 3 > 0, tasks=PAIR)  # fmt: skip
    report([*two, third], out=tmp_path / "one")
    report([third, *two[::-1]], out=tmp_path / "other")
    one, other = (
        {frozenset((p["a"], p["b"])): p for p in summary(tmp_path / name)["pairs"]
         if (p["task"], p["table"]) == ("addition", "log_smape")}
        for name in ("one", "other")
    )  # fmt: skip
    assert set(one) == set(other) and len(one) == 3
    for pair, found in one.items():
        again = other[pair]
        for key in ("items", "p", "p_over_tasks", "p_over_pairs", "smallest"):
            assert found[key] == again[key]
        turned = found["a"] != again["a"]
        assert found["difference"] == (-again["difference"] if turned else again["difference"])
        bounds = (-again["high"], -again["low"]) if turned else (again["low"], again["high"])
        assert (found["low"], found["high"]) == pytest.approx(bounds, rel=1e-9)
    ranks = [
        {run["path"]: run["ranks"] for run in summary(tmp_path / name)["runs"]}
        for name in ("one", "other")
    ]
    assert ranks[0] == ranks[1]


def test_the_smallest_difference_stands_in_every_caption(two: list[Path], tmp_path: Path) -> None:
    report(two, out=tmp_path / "out")
    note = summary(tmp_path / "out")["smallest_difference"]["note"]
    assert note.startswith("On 40 items a difference of fewer than 6 right answers (15.0 points)")
    assert "power 80 %" in note
    for name in ("log_smape", "exact_match", "comparisons", "ranks", "overall"):
        assert note in (tmp_path / "out" / "tables" / f"{name}.md").read_text()
    assert "6 right answers" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("items", [1, 3])
def test_so_few_items_show_nothing_and_the_caption_says_so(tmp_path: Path, items: int) -> None:
    data = longer.dataset(tmp_path, PAIR)
    for name, right in (("a", True), ("b", False)):
        longer.run(tmp_path / "runs" / name, data, lambda *_, r=right: r, tasks=PAIR, limit=items)
    report([tmp_path / "runs"], out=tmp_path / "out")
    found = summary(tmp_path / "out")
    assert {pair["smallest"] for pair in found["pairs"]} == {None}
    assert found["smallest_difference"]["tasks"] == {}
    assert found["smallest_difference"]["note"] == (
        f"Of a task no difference can be shown on so few items: at most {items}, and 6 are needed."
    )


def test_one_run_has_nobody_to_be_compared_with(two: list[Path], tmp_path: Path) -> None:
    report(two[:1], out=tmp_path / "out")
    assert rows(tmp_path / "out", "comparisons") == []
    found = summary(tmp_path / "out")
    assert (found["pairs"], found["runs"][0]["ranks"]) == ([], {})
    assert found["smallest_difference"]["note"].endswith("(15.0 points) never shows.")


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    for place in (0, 1):
        runs.run(tmp_path / "runs" / str(place), data, runs.all_right(),
                 display=f"<b>|_x_ %{place}\\input")  # fmt: skip
    report([tmp_path / "runs"], out=tmp_path / "out")
    for name in ("comparisons", "ranks", "overall"):
        text = (tmp_path / "out" / "tables" / f"{name}.md").read_text()
        assert "<b>" not in text and "&lt;b&gt;" in text
        assert r"\textbackslash{}input" in (tmp_path / "out/tables" / f"{name}.tex").read_text()


def test_published_rows_are_never_compared(two: list[Path], tmp_path: Path) -> None:
    report(two, published=True, out=tmp_path / "out")
    for name in ("comparisons", "ranks", "overall"):
        assert "Kimi" not in (tmp_path / "out" / "tables" / f"{name}.md").read_text()
