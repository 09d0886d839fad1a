"""Prompt sensitivity and metamorphic tests with responders whose weaknesses are planted."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from numbench.csv_files import read_csv
from numbench.dataset.store import Dataset, open_dataset
from numbench.plot_style import plot_style
from numbench.records import Item, Response, RunInfo
from numbench.reporting import report
from numbench.reporting.comparisons import OVERALL, compare_runs
from numbench.reporting.console import terminal_table
from numbench.reporting.entries import measure
from numbench.reporting.figure_registry import FIGURES
from numbench.reporting.figure_spec import SkippedFigure
from numbench.reporting.metamorphic import MetamorphicResult, metamorphic_results
from numbench.reporting.prompt_effects import prompt_effects, prompt_spreads
from numbench.reporting.report_data import ReportData
from numbench.scoring import ScoredItem, ScoredRun, score_run
from numbench.scoring.exact_protocol import score_exact
from numbench.tasks import PAPER_TASKS
from numbench.transforms import TRANSFORMS, open_variant
from tests.reporting.figure_checks import assert_legible
from tests.reporting.variant_runs import (
    Responder,
    answer_json,
    knows,
    small_dataset,
    write_variant,
    wrong,
)

pytestmark = pytest.mark.slow

V1 = open_dataset("v1")


def in_memory(
    data: Dataset,
    items: dict[str, list[Item]],
    responder: Responder,
    transform: str | None,
    prompts: str = "paper",
) -> ScoredRun:
    """The scored run of a responder, without files."""
    variant = open_variant(prompts, transform)
    tasks = variant.select_tasks(tuple(items), is_chosen=False)
    rows = {}
    for task in tasks:
        rows[task] = []
        for item in items[task]:
            asked = variant.ask(item)
            response = Response(item_id=item.id, text=responder(asked, item), finish_reason="stop")
            rows[task].append(ScoredItem(asked, response, score_exact(asked, response)))
    info = RunInfo(
        model="gpt-5",
        display="GPT 5",
        reasoning="minimal",
        dataset=data.ref(Path()),
        prompt=variant.prompts.ref(tasks),
        tasks=tasks,
        limit=None,
        settings={},
        versions={},
        created="",
        transform=transform,
    )
    return ScoredRun(Path("run"), info, data, "exact", rows)


def results(runs: Sequence[ScoredRun]) -> dict[tuple[str, str], MetamorphicResult]:
    return {(each.transform, each.task): each for each in metamorphic_results(measure(runs))}


def invariant(asked: Item, item: Item) -> str:
    """Right for 60 % of the items; else an error that is the same in every form."""
    if knows(0.6, "invariant")(item):
        return answer_json(asked.answer, asked)
    transform = next(
        name
        for name in (None, "swap", "negate", "scale3")
        if (name is None or item.task in open_variant("paper", name).transform.tasks)  # type: ignore[union-attr]
        and open_variant("paper", name).ask(item).operands == asked.operands
        and open_variant("paper", name).ask(item).operator == asked.operator
    )
    answer = wrong(item.answer)
    if transform is not None:
        chosen = open_variant("paper", transform).transform
        assert chosen is not None
        answer = chosen.map_answer(item.task, item.operator, answer)
    return answer_json(answer, asked)


@pytest.mark.parametrize("name", [*TRANSFORMS, "scale3"])
def test_an_invariant_responder_is_fully_consistent(name: str) -> None:
    items = {task: V1.by_task[task][:30] for task in PAPER_TASKS}
    runs = [in_memory(V1, items, invariant, transform) for transform in (None, name)]
    found = results(runs)
    assert {task for _, task in found} == {OVERALL, *runs[1].rows} - {""}
    for result in found.values():
        if result.n:
            assert result.consistency is not None
            assert result.consistency.value == 100.0
            assert 0 < (result.consistency.low or 0) < 100
        assert result.loss is None or abs(result.loss.difference) < 12
        assert not result.is_significant
        assert result.unreadable == 0


def weak_at(share: float, seed: int, base: float = 0.8) -> Responder:
    """Right for a share `base` of the items, and in another form wrong for `share` of these."""

    def respond(asked: Item, item: Item) -> str:
        fails = asked.prompt != item.prompt and knows(share, f"weak {seed}")(item)
        is_right = knows(base, f"base {seed}")(item) and not fails
        return answer_json(asked.answer if is_right else wrong(asked.answer), asked)

    return respond


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_planted_weakness_is_recovered_with_intervals_that_cover(share: float) -> None:
    repetitions, items = 80, {"multiplication": V1.by_task["multiplication"][:150]}
    covered_loss = covered_consistency = significant = 0
    for seed in range(repetitions):
        responder = weak_at(share, seed)
        runs = [in_memory(V1, items, responder, form) for form in (None, "scientific")]
        (result,) = results(runs).values()
        assert result.loss is not None
        assert result.consistency is not None
        assert result.discordant is not None
        lost, gained = result.discordant
        assert gained == 0
        assert lost == round(result.n * (1 - result.consistency.value / 100))
        matches = [
            100.0 * sum(row.score.exact_match for row in run.rows["multiplication"]) / 150
            for run in runs
        ]
        assert matches[0] - matches[1] == pytest.approx(100 * lost / 150)
        low, high = result.consistency.low, result.consistency.high
        assert low is not None
        assert high is not None
        covered_consistency += low <= 100 * (1 - 0.8 * share) <= high
        significant += result.is_significant
        # The loss of a wrong answer depends on the item.
        costs = [
            (1.0 - (score_exact(row.item, _wrong(row)).log_smape or 0.0)) * 100
            for row in runs[0].rows["multiplication"]
        ]
        truth = -0.8 * share * float(np.mean(costs))
        covered_loss += result.loss.low <= truth <= result.loss.high
    margin = 3 * math.sqrt(0.05 * 0.95 / repetitions)
    assert covered_loss / repetitions >= 0.95 - margin
    assert covered_consistency / repetitions >= 0.95 - margin
    assert significant == (repetitions if share else 0)


def _wrong(row: ScoredItem) -> Response:
    text = answer_json(wrong(row.item.answer), row.item)
    return Response(item_id=row.item.id, text=text, finish_reason="stop")


def test_forms_that_do_not_matter_are_rarely_significant() -> None:
    """A responder that errs at random, independently in each form: no loss is to be found."""
    repetitions, items = 100, {"addition": V1.by_task["addition"][:120]}

    def noisy(seed: int) -> Responder:
        def respond(asked: Item, item: Item) -> str:
            rng = random.Random(f"{seed} {asked.prompt}")
            return answer_json(asked.answer if rng.random() < 0.7 else "1", asked)

        return respond

    alarms = 0
    for seed in range(repetitions):
        forms = (None, "plus", "scientific")
        runs = [in_memory(V1, items, noisy(seed), form) for form in forms]
        alarms += any(result.is_significant for result in results(runs).values())
    assert alarms / repetitions <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repetitions)


def test_planted_effects_of_prompts_are_recovered_and_chance_is_rarely_significant() -> None:
    """Answers are independent in every set: `explicit` changes nothing, `steps` gains 25 points."""
    repetitions, items = 80, {"minmax": V1.by_task["minmax"][:100]}
    shares = {"paper": 0.6, "explicit": 0.6, "steps": 0.85}
    covered = found = alarms = 0
    for seed in range(repetitions):

        def responder(name: str, seed: int = seed) -> Responder:
            is_right = knows(shares[name], f"{seed} {name}")
            return lambda asked, item: answer_json(
                asked.answer if is_right(item) else wrong(asked.answer), asked
            )

        runs = [in_memory(V1, items, responder(name), None, name) for name in shares]
        explicit, steps = prompt_effects(measure(runs), compare_runs(runs))
        assert explicit.result and steps.result
        assert explicit.p is not None and steps.p is not None
        for effect, truth in ((explicit.result, 0), (steps.result, 25)):
            covered += effect.low <= truth <= effect.high
        alarms += explicit.p <= 0.05
        found += steps.p <= 0.05
    assert covered / (2 * repetitions) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / (2 * repetitions))
    assert alarms / repetitions <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repetitions)
    # The power of an exact test of two shares of 100 items, 60 and 85 %, is 97 %.
    assert found / repetitions >= 0.9


def test_only_grouped_digits_are_a_weakness_and_unchanged_items_do_not_count() -> None:
    items = {"addition": V1.by_task["addition"][:200]}
    grouped = open_variant("paper", "grouping")
    long = [item for item in items["addition"] if grouped.ask(item).prompt != item.prompt]

    def respond(asked: Item, item: Item) -> str:
        fails = any(part[0].isdigit() for part in asked.prompt.split(",")[1:])
        return "I see a list." if fails else answer_json(asked.answer, asked)

    forms = (None, "grouping", "plus", "swap")
    found = results([in_memory(V1, items, respond, form) for form in forms])
    grouping = found["grouping", "addition"]
    assert (grouping.n, grouping.unreadable) == (len(long), len(long))
    assert 0 < len(long) < 200
    assert grouping.consistency is not None
    assert grouping.loss is not None
    assert (grouping.consistency.value, grouping.loss.difference) == (0.0, -100.0)
    assert grouping.discordant == (len(long), 0)
    assert grouping.is_significant
    for name in ("plus", "swap"):
        result = found[name, "addition"]
        assert result.consistency is not None
        assert (result.consistency.value, result.is_significant) == (100.0, False)


def test_items_unreadable_in_both_forms_are_left_out_and_failed_requests_do_not_count() -> None:
    items = {"addition": V1.by_task["addition"][:6]}
    first, second, *_ = items["addition"]

    def respond(asked: Item, item: Item) -> str:
        if item is first:
            return "I cannot."
        if item is second and asked is not item:
            return "I cannot."
        return answer_json(asked.answer, asked)

    plain, negated = (in_memory(V1, items, respond, form) for form in (None, "negate"))
    *others, last = negated.rows["addition"]
    failed = last._replace(response=None, score=score_exact(last.item, None))
    (result,) = results([plain, negated._replace(rows={"addition": [*others, failed]})]).values()
    assert result.consistency is not None
    # Four pairs: one is readable in one form only, three agree.
    assert (result.n, result.consistency.value, result.unreadable) == (5, 75.0, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with several prompt sets and forms; `paraphrase-5` is 30 points worse in Add."""
    root = tmp_path_factory.mktemp("variants")
    data = small_dataset(root, V1, 40, ("interval", "addition", "mean"))

    def respond(asked: Item, item: Item) -> str:
        is_harder = "What do you get for" in asked.prompt and knows(0.5, "weak")(item)
        is_right = knows(0.8, "base")(item) and not is_harder
        return answer_json(asked.answer if is_right else wrong(asked.answer), asked)

    for name in ("paper", "steps", "paraphrase-1", "paraphrase-5"):
        write_variant(root / "runs" / name, data, respond, prompts=name)
    for name in ("grouping", "swap"):
        write_variant(root / "runs" / name, data, respond, transform=name, samples=2)
    write_variant(root / "runs" / "other", data, respond, model="m", display="M", prompts="steps")
    return root


def test_reports_show_effects_spread_and_forms(folder: Path) -> None:
    result = report([folder / "runs"], out=folder / "out", published=False)
    tables = {
        name: [row for _, row in read_csv(folder / "out" / "tables" / f"{name}.csv")]
        for name in ("prompt_effects", "prompt_spread", "metamorphic")
    }
    effects = {(row["Prompts"], row["Task"]): row for row in tables["prompt_effects"]}
    assert len(effects) == 3 * 4
    hardest = effects["paraphrase-5", "Add"]
    assert float(hardest["p"]) < 0.05
    assert effects["steps", "Add"]["difference"].startswith("+0.0 [")
    assert float(hardest["score"]) - float(hardest["reference"]) == pytest.approx(
        float(hardest["difference"].split()[0]), abs=0.11
    )
    spread = {row["Task"]: row for row in tables["prompt_spread"]}
    assert {row["wordings"] for row in spread.values()} == {"3"}
    assert spread["Interval"]["spread"].startswith("0.0 [0.0, ")
    expected = float(spread["Add"]["highest"]) - float(spread["Add"]["lowest"])
    assert float(spread["Add"]["spread"].split()[0]) == pytest.approx(expected, abs=0.11)
    forms = {(row["Transformation"], row["Task"]): row for row in tables["metamorphic"]}
    assert ("swap", "Interval") not in forms
    assert {row["difference"].split()[0] for row in forms.values()} == {"+0.0"}
    page = (folder / "out" / "tables" / "prompt_effects.md").read_text()
    assert ": Allows written working before the answer." in page
    assert "digits in groups" in (folder / "out" / "tables" / "metamorphic.md").read_text()
    summary = json.loads((folder / "out" / "report.json").read_text())
    assert {run["prompts"].split("@")[0] for run in summary["runs"]} >= {"paper", "steps"}
    assert len(summary["prompt_effects"]) == 12
    assert len(summary["prompt_spread"]) == 3
    assert (folder / "out" / "figures" / "variant_effects_1.svg").is_file()
    assert "Prompt spread" in (folder / "out" / "report.html").read_text()
    labels = [f"{entry.name} {entry.reasoning}" for entry in result.entries]
    assert len(set(labels)) == len(labels)
    console = Console(width=80, record=True, file=StringIO())
    console.print(terminal_table(result))
    text = console.export_text()
    assert "  prompt spread" in text
    assert "paraphrase-5" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_figure_is_legible_and_has_a_panel_per_variant(folder: Path) -> None:
    names = ("paper", "steps", "paraphrase-5", "grouping", "swap")
    data = ReportData(measure([score_run(folder / "runs" / name) for name in names]))
    (spec,) = (spec for spec in FIGURES if spec.name == "variant_effects")
    with plot_style():
        drawn = spec.draw(data)
        assert isinstance(drawn, dict)
        (figure,) = drawn.values()
        assert_legible(figure)
    titles = {axes.get_title() for axes in figure.axes}
    assert titles == {"steps", "paraphrase-5", "grouping", "swap"}
    assert isinstance(spec.draw(ReportData(data.runs[:1])), SkippedFigure)


def test_prompts_have_an_effect_on_the_mean_of_some_tasks(folder: Path) -> None:
    runs = [score_run(folder / "runs" / name) for name in ("paper", "paraphrase-5")]
    some = [run._replace(rows={t: run.rows[t] for t in ("interval", "addition")}) for run in runs]
    effects = {effect.task: effect for effect in ReportData(measure(some)).prompt_effects}
    assert list(effects) == ["addition", "interval", OVERALL]
    differences = [effects[task].result for task in ("addition", "interval", OVERALL)]
    add, interval, both = (d.difference if d else math.nan for d in differences)
    assert both == pytest.approx((add + interval) / 2)
    assert effects[OVERALL].means is not None
    before, after = effects[OVERALL].means
    assert after - before == pytest.approx(both)


def test_signatures_name_prompts_and_transformation(folder: Path) -> None:
    def signature(name: str) -> str:
        (run,) = measure([score_run(folder / "runs" / name)])
        return run.signatures["addition"]

    assert "|prompt:paper|protocol" in signature("paper")
    assert "|prompt:steps@" in signature("steps")
    assert "|prompt:paper|transform:swap|" in signature("swap")


def test_only_runs_that_differ_in_nothing_else_are_a_family(folder: Path) -> None:
    names = ("paper", "other", "swap")
    data = ReportData(measure([score_run(folder / "runs" / name) for name in names]))
    assert data.prompt_effects == []
    assert data.prompt_spreads == []
    assert {row.transform for row in data.metamorphic_results} == {"swap"}


def test_the_spread_counts_a_wording_once(folder: Path) -> None:
    names = ("paper", "paraphrase-1", "paraphrase-5", "steps")
    runs = measure([score_run(folder / "runs" / name) for name in names])
    assert {row.wordings for row in prompt_spreads(runs)} == {3}


def test_the_example_of_the_docs_is_what_its_script_writes() -> None:
    path = Path(__file__).parents[2] / "docs" / "_build" / "prompts_example.py"
    spec = importlib.util.spec_from_file_location("prompts_example", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    data = example.example_data()
    page = example.PAGE.read_text(encoding="utf-8")
    assert example.with_tables(page, example.example_tables(data)) == page
    # What is planted is found, and nothing else.
    found = {(r.transform, r.is_significant) for r in data.metamorphic_results}
    assert found == {("grouping", True), ("plus", False), ("swap", False)}
    significant = {
        data.runs[e.run].scored.info.prompt.name for e in data.prompt_effects if e.is_significant
    }
    assert significant == {"paraphrase-4", "steps"}
    assert b"<svg" in example.FIGURE.read_bytes()


def test_working_counts_as_the_requested_format_under_prompts_that_allow_it(tmp_path: Path) -> None:
    data = small_dataset(tmp_path, V1, 5, ("addition",))

    def respond(asked: Item, item: Item) -> str:
        return f"Step 1: add the numbers.\n\n{answer_json(asked.answer, asked)}"

    shares = []
    for name in ("paper", "steps"):
        run = score_run(write_variant(tmp_path / name, data, respond, prompts=name))
        (measured,) = measure([run])
        shares.append((measured.cells["addition"].compliance, measured.cells["addition"].score))
    assert shares == [(0.0, 100.0), (100.0, 100.0)]
