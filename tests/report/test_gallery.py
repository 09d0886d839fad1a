"""All figures of a report on many and few, plain and hostile runs: nothing is cut or covered."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from bench.dataset.store import Dataset
from bench.records import Response
from bench.report import figures
from bench.report.gallery import FIGURES, LeftOut, Material, Plan, plan_of
from bench.report.layout import Entry, Estimate
from bench.report.measured import Measured, measure
from bench.report.published import published_entries
from bench.scoring import score_run
from bench.tasks import TASKS
from tests.report import runs
from tests.report.drawn import assert_legible

NAMES = (
    ("GPT 5", "minimal"),
    ("GPT 5", "maximal"),
    ("Costs $5 and $10", "none"),
    ("<b>bold</b> & $\\frac{1}{", "high"),
    ("_under %s {x}", "low"),
    ("A model " + "with a very long name " * 9, "medium, and more than that"),
    ("W" * 200, "W" * 200),
    ("מודל בעברית", "none"),
    ("🦜🔥 parrot", "none"),
    ("数値モデル" * 9, "高い"),
    ("tab\tand\nline", "none"),
    ("Llama 4 Maverick", "none"),
    ("x", "none"),
)
NAMED_PLANS = [pytest.param(plan, id=plan.name) for plan in FIGURES]


def responses(place: int) -> dict[str, Response]:
    """Some right, some wrong, of growing length and price."""
    found = runs.all_right(tokens=10 * 2**place)
    for number, key in enumerate(list(found)):
        task, _, item = key.partition("-")
        if (number * 7 + place) % 5 < place % 4:
            found[key] = runs.said(task, int(item), '{"answer": 13.5}', 9 * 2**place)
    return {
        key: msgspec.structs.replace(response, cost=0.001 * 3**place)
        for key, response in found.items()
    }


def scored(folder: Path, data: Dataset, place: int, tasks: tuple[str, ...]) -> Path:
    display, reasoning = NAMES[place]
    own = {key: r for key, r in responses(place).items() if key.split("-")[0] in tasks}
    return runs.run(
        folder / str(place), data, own, display=display, reasoning=reasoning, tasks=tasks
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    """Thirteen runs under hostile names; the last one has only two tasks."""
    folder = tmp_path_factory.mktemp("many")
    data = runs.dataset(folder)
    places = [
        scored(folder, data, place, ("mean", "sorting") if place == 12 else tuple(TASKS))
        for place in range(13)
    ]
    return measure([score_run(place) for place in places])


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    """Two runs with everything right at the same price, and one that answered nothing."""
    folder = tmp_path_factory.mktemp("equal")
    data = runs.dataset(folder)
    right = {
        key: msgspec.structs.replace(r, cost=0.5) for key, r in runs.all_right(tokens=7).items()
    }
    places = [
        runs.run(folder / name, data, found, display=name)
        for name, found in (("one", right), ("two", right), ("silent", {}))
    ]
    return measure([score_run(place) for place in places])


def assert_all_legible(plan: Plan, material: Material) -> None:
    with figures.style():
        found = plan.draw(material)
        assert not isinstance(found, LeftOut), found
        assert found
        for name, figure in found.items():
            assert plan_of(name) is plan
            assert figure.get_figwidth() in (figures.HALF_WIDTH, figures.FULL_WIDTH) or (
                figures.HALF_WIDTH < figure.get_figwidth() < figures.FULL_WIDTH
            )
            assert_legible(figure)


@pytest.mark.parametrize("plan", NAMED_PLANS)
def test_thirteen_runs_under_hostile_names_are_legible(plan: Plan, many: list[Measured]) -> None:
    assert_all_legible(plan, Material(many, published_entries(), "Measured"))


@pytest.mark.parametrize("plan", NAMED_PLANS)
def test_equal_values_and_empty_cells_are_legible(plan: Plan, equal: list[Measured]) -> None:
    assert_all_legible(plan, Material(equal, (), "Measured"))


@pytest.mark.parametrize("plan", NAMED_PLANS)
def test_one_run_is_drawn_or_left_out_for_a_reason(plan: Plan, many: list[Measured]) -> None:
    material = Material(many[:1], (), "Measured and imported")
    if plan.name.startswith("pareto"):
        assert isinstance(plan.draw(material), LeftOut)
    else:
        assert_all_legible(plan, material)


def test_without_any_answer_figures_of_items_are_left_out(equal: list[Measured]) -> None:
    material = Material(equal[-1:], (), "Measured")
    with figures.style():
        found = {plan.name: plan.draw(material) for plan in FIGURES}
    reasons = {name: own.reason for name, own in found.items() if isinstance(own, LeftOut)}
    assert set(found) - set(reasons) == {"radar", "radar_", "tokens_vs_score"}
    assert all(reasons.values())


def test_more_runs_than_a_panel_can_tell_apart_come_in_parts(many: list[Measured]) -> None:
    (plan,) = (plan for plan in FIGURES if plan.name == "difficulty")
    with figures.style():
        found = plan.draw(Material(many, (), "Measured"))
    assert not isinstance(found, LeftOut)
    assert list(found) == ["difficulty_1", "difficulty_2"]
    lines = [len(figure.legends[0].get_texts()) for figure in found.values()]
    # Each with the mean of all.
    assert lines == [7 + 1, 6 + 1]


def test_only_stems_of_figures_are_taken_for_theirs() -> None:
    known = ("radar", "radar_gpt-5", "difficulty", "difficulty_2", "pareto_cost")
    assert all(plan_of(name) for name in known)
    assert not any(plan_of(name) for name in ("notes", "radars", "difficulty_check", "cost"))


def test_the_same_material_gives_the_same_bytes(many: list[Measured]) -> None:
    (plan,) = (plan for plan in FIGURES if plan.name == "pareto_tokens")

    def drawn() -> list[dict[str, bytes]]:
        with figures.style():
            found = plan.draw(Material(many, published_entries(), "Measured"))
            assert not isinstance(found, LeftOut)
            return [figures.rendered(figure) for figure in found.values()]

    assert drawn() == drawn()


def test_published_bounds_are_unknown_and_draw_no_whisker() -> None:
    assert Estimate(50.0).bounded is None
    assert Estimate(50.0, 40.0, 60.0).bounded == (50.0, 40.0, 60.0)
    assert not any(math.isnan(e.value) for entry in published_entries() for e in _estimates(entry))


def _estimates(entry: Entry) -> list[Estimate]:
    return [estimate for row in entry.tables.values() for estimate in row.values()]
