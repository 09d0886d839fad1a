"""Plans of items, tokens and cost for a precision: from a pilot run and from published scores."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import numbench as nb
from numbench.cli import main
from numbench.dataset.settings import POOL_SIZE
from numbench.errors import BadInput
from numbench.runner.planning import plan as plan_run
from numbench.runner.spec import RunSpec
from numbench.stats.intervals import wilson
from tests.report import large_runs

Z = 1.959963984540054


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    data = large_runs.dataset(tmp_path, ("addition", "minmax"))
    return large_runs.run(
        tmp_path / "baseline" / "float64", data, lambda t, n: n % 4 > 0, tasks=("minmax",)
    )


def test_published_scores_give_the_largest_spread_and_the_costs_of_a_run() -> None:
    plan = nb.plan_precision("gpt-5", reasoning="minimal", precision=1.0)
    assert len(plan.tasks) == 9
    minmax, *_ = plan.tasks
    assert minmax.is_published and minmax.score == 98.8
    variance = 98.8 * 1.2
    assert minmax.variance and minmax.variance.between == pytest.approx(variance)
    # v1 is stratified, but how much difficulty explains is not published.
    low, high = wilson(round(0.988 * minmax.items), minmax.items)
    assert 50 * (high - low) == pytest.approx(1, rel=0.02)
    whole = plan_run(RunSpec("gpt-5", reasoning="minimal"))
    (of_run,) = (task for task in whole.tasks if task.task == "minmax")
    assert of_run.cost and minmax.cost == pytest.approx(of_run.cost * minmax.items / 500)
    assert plan.cost == pytest.approx(sum(task.cost or 0 for task in plan.tasks))


def test_pilot_gives_scores_and_spread(pilot: Path, tmp_path: Path) -> None:
    plan = nb.plan_precision(
        "baseline/float64", pilot=pilot, dataset=tmp_path / "longer", precision=5, difference=10
    )
    addition, minmax = sorted(plan.tasks, key=lambda task: task.task)
    assert (addition.score, addition.items, addition.needed) == (None, None, None)
    assert (minmax.score, minmax.is_published) == (75.0, False)
    # Unbiased, and two pseudo-items.
    variance = 100**2 * (0.75 * 0.25 * 40 / 39 + (0.75**2 + 0.25**2) / 40)
    assert minmax.variance and minmax.variance.between == pytest.approx(variance)
    low, high = wilson(round(0.75 * minmax.items), minmax.items)
    # The spread includes two pseudo-items in forty.
    assert 50 * (high - low) == pytest.approx(5, rel=0.06)
    normal = 2 * variance * ((Z + 0.8416) / 10) ** 2
    assert minmax.difference_items and normal <= minmax.difference_items <= 1.03 * normal
    assert plan.is_local and plan.cost is None


def test_a_pilot_on_a_stratified_dataset_needs_fewer_items(tmp_path: Path) -> None:
    data = nb.generate("drawn", tasks=["multiplication"], size=200, out=tmp_path / "drawn")
    items = data.by_task["multiplication"]
    middle = sorted(item.difficulty.base10 for item in items)[100]
    responses = [
        nb.Response(
            item_id=item.id,
            text=f'{{"answer": {item.answer if item.difficulty.base10 < middle else 7}}}',
            finish_reason="stop",
        )
        for item in items
    ]
    run = large_runs.write(tmp_path / "run", data, responses, ("multiplication",))
    (task,) = nb.plan_precision("baseline/float64", pilot=run, dataset=data.path, precision=2).tasks
    assert task.variance and task.items and task.variance.residual < 0.1
    half = Z * task.variance.of_mean(task.items, 1, POOL_SIZE) ** 0.5
    assert half == pytest.approx(2, rel=0.02)
    assert task.items < 0.3 * task.variance.between * (Z / 2) ** 2


def test_command_prints_80_columns_and_the_basis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ["--model", "gpt-5", "--reasoning", "minimal", "--difference", "2"]
    monkeypatch.setattr(sys, "argv", ["numbench", "plan-precision", *arguments, "--samples", "3"])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "98.8*" in out and "published" in out and "$" in out
    assert "numbench generate --name NAME --size" in out
    assert "More samples are not counted as a gain" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.0}, "--precision 0"),
        ({"precision": float("nan")}, "--precision nan"),
        ({"difference": 80.0}, "--difference 80"),
        ({"samples": 0}, "--samples 0"),
        ({"model": ""}, "--model NAME, or --pilot RUN"),
        ({"reasoning": "high", "model": "nothing"}, "nothing"),
    ],
)
def test_wrong_arguments_are_explained(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        nb.plan_precision(**{"model": "gpt-5", "reasoning": "minimal", **options})  # type: ignore[arg-type]
