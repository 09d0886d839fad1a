"""The page of tables, generated from stored runs: contents, reproducibility, errors."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from bittoken.training.recipe import load_recipe
from experiments.page import read_findings, read_runs, render_page
from experiments.results_store import RESULTS, TrainingScores
from experiments.table_layout import LAYOUT, read_layout
from experiments.tables import lead, main, write_tables
from numbench.errors import BadInput
from numbench.jsonl import write_json
from tests.experiments.runs import TaskScores, store_scores
from tests.experiments.tiny import ROOT


def store(
    folder: Path, name: str, tasks: TaskScores, tokens_a_question: float = 47.1
) -> TrainingScores:
    """Store a run of the comparison with given scores."""
    seed = name.rpartition("-s")[2]
    encoding = "digit" if "digit" in name else "bittoken"
    overrides = (f"name={name}", f"training.seed={seed}")
    recipe = load_recipe(ROOT / f"bench/bittoken/recipes/budget/multi-{encoding}.toml", overrides)
    return store_scores(folder / name, recipe, tasks, tokens_a_question=tokens_a_question)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    folder = tmp_path / "trained"
    store(folder, "multi-digit-s1", {"minmax": (70.0, None), "addition": (20.0, 40.0)})
    store(folder, "multi-bittoken-s1", {"minmax": (60.0, None), "addition": (10.0, 30.0)})
    store(folder, "multi-bittoken-s2", {"minmax": (64.0, None), "addition": (12.0, 36.0)}, 46.8)
    return folder


def render(folder: Path) -> str:
    """Return the page without drawing the curves."""
    layouts = read_layout()
    findings = read_findings(folder / "findings.md", layouts)
    return render_page(layouts, read_runs(folder), findings, lead())


def cells(page: str, section: str) -> dict[tuple[str, str], list[str]]:
    """Return the cells of a section's table by task and metric."""
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return {(row[0], row[1]): row[2:] for row in rows}


def test_page_is_reproducible(stored: Path, tmp_path: Path) -> None:
    first = {path.relative_to(stored): path.read_bytes() for path in write_tables(stored)}
    again = tmp_path / "again"
    shutil.copytree(stored, again)
    second = {path.relative_to(again): path.read_bytes() for path in write_tables(again)}
    assert first == second
    assert set(map(str, first)) == {"README.md", "curves/multi.png", "curves/multi.svg"}


def test_one_seed_has_its_interval_and_several_have_mean_and_scores(stored: Path) -> None:
    rows = cells(render(stored), "Six tasks together")
    header = rows["Task", "Metric"]
    digit, bittoken = header.index("Single digit"), header.index("BitToken")
    minmax, addition = rows["MinMax", "exact match"], rows["Add", "log-sMAPE"]
    assert minmax[0] == "32.1"
    assert minmax[digit] == "[70.0](multi-digit-s1/) (68.0–72.0)"
    assert minmax[bittoken] == "62.0 ([60.0](multi-bittoken-s1/) [64.0](multi-bittoken-s2/))"
    assert addition[digit] == "[40.0](multi-digit-s1/) (38.0–42.0)"
    assert rows["Add", "exact match"][digit] == "[20.0](multi-digit-s1/) (18.0–22.0)"
    assert rows["Seeds", ""][bittoken] == "1, 2"
    assert rows["Budget, tokens", ""][digit] == "5,000,000"
    assert (
        rows["Tokens per question", ""][digit] == rows["Tokens per question", ""][bittoken] == "47"
    )
    assert rows["Best step", ""][digit] == "64"


def test_published_values_are_shown_and_cells_without_runs_are_empty(stored: Path) -> None:
    page = render(stored)
    rows = cells(page, "Six tasks together")
    header = rows["Task", "Metric"]
    bittoken, xval = header.index("BitToken"), header.index("xVal")
    assert rows["Mult", "log-sMAPE"][bittoken : bittoken + 2] == ["", "*99.1*"]
    assert rows["Mult", "exact match"][bittoken + 1] == "*97.8*"
    assert rows["MinMax", "exact match"][xval : xval + 2] == ["", "*0.1*"]
    assert rows["Fineweb", "perplexity"][bittoken : bittoken + 2] == ["", "*48.78*"]
    alone = cells(page, "One task alone")
    assert alone["Exp", "log-sMAPE"][-2:] == ["", "*39.1*"]
    ablation = cells(page, "Ablation: without reciprocal")
    assert ablation["Div", "log-sMAPE"][-3:] == ["*99.5*", "", "*35.1*"]
    assert ablation["Add", "log-sMAPE"][-4:] == ["", "", "", ""]


def test_caption_describes_the_measurement(stored: Path) -> None:
    page = render(stored)
    message = page.partition("**Measured** ")[2].partition("\n")[0]
    assert message == (
        "with a budget of 5,000,000 tokens per training (2,048 per step); 1,600,000 parameters "
        "(3 × 256, 4 heads); 1,234 s of training on a\\_test CPU, 2 cores, 1 thread; seeds 1, 2; "
        "at most 4 digits per operand, in training and in the dataset `short@abcdef`, 500 items "
        "per task; numbench 0.1.0, torch 2.0."
    )
    assert page.count("The two are not measured in the same way (see above).") == 5
    assert "No runs yet" in page


def test_findings_are_below_their_table(stored: Path) -> None:
    (stored / "findings.md").write_text(
        "By table.\n\n## multi\n\nBits lead.\n\n## solo\n\nAlone.\n"
    )
    page = render(stored)
    section = page.partition("## Six tasks together")[2].partition("\n## ")[0]
    assert "**Findings.** Bits lead.\n" in section
    (stored / "findings.md").write_text("## mutli\n\nBits lead.\n")
    with pytest.raises(BadInput, match="no table 'mutli'"):
        render(stored)


def test_seeds_with_different_recipes_are_rejected(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored / "multi-bittoken-s2" / "scores.json"
    scores = msgspec.json.decode(path.read_bytes())
    scores["recipe"]["training"]["tokens"] = 7
    path.write_bytes(msgspec.json.encode(scores))
    assert main(["--out", str(stored)]) == 2
    message = capsys.readouterr().err
    assert "multi-bittoken-s1 and multi-bittoken-s2 differ in training.tokens" in message


def test_run_with_the_name_of_another_seed_is_rejected(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = json.loads((stored / "multi-bittoken-s2/scores.json").read_text())
    scores["run"] = "multi-bittoken-s3"
    write_json(stored / "multi-bittoken-s3/scores.json", scores)
    assert main(["--out", str(stored)]) == 2
    assert "has run 'multi-bittoken-s3' and seed 2" in capsys.readouterr().err


def test_folder_without_runs_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path / "typo")]) == 2
    assert "contains no runs" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_unknown_published_column_is_rejected(tmp_path: Path) -> None:
    layout = tmp_path / "layout.toml"
    layout.write_text(LAYOUT.read_text().replace('published = "FoNE"', 'published = "FONE"', 1))
    with pytest.raises(BadInput, match="multi: no column 'FONE' in local_multitask"):
        read_layout(layout)


def test_documented_speed_is_that_of_the_logs(tmp_path: Path) -> None:
    runs = [run for seeds in read_runs(ROOT / RESULTS).values() for run in seeds]
    speeds = sorted(run.tokens / run.seconds for run in runs)
    minutes = sorted(run.seconds / 60 for run in runs)
    sizes = sorted(run.parameters / 1e6 for run in runs)
    row = (
        f"| `experiments`, {sizes[0]:.1f}–{sizes[-1]:.1f}M parameters, 1.5 or 5 million tokens "
        f"| one core of a CPU | {round(speeds[0], -2):,.0f}–{round(speeds[-1], -2):,.0f} "
        f"| {minutes[0]:.0f}–{minutes[-1]:.0f} min | | measured |"
    )
    assert row in (ROOT / "docs/training.md").read_text()


def test_curves_exist_only_for_tables_with_a_comparison(stored: Path) -> None:
    write_tables(stored)
    figure = (stored / "curves" / "multi.svg").read_text()
    assert "BitToken" in figure and "Single digit" in figure and "xVal" not in figure
    shutil.rmtree(stored / "multi-digit-s1")
    write_tables(stored)
    assert not list((stored / "curves").iterdir())
    assert "curves/multi.png" not in (stored / "README.md").read_text()


def test_committed_page_is_generated_from_the_committed_runs() -> None:
    folder = ROOT / RESULTS
    committed = (folder / "README.md").read_text()
    assert render(folder) == committed
    for link in re.findall(r"\]\(([^)]+)\)", committed):
        assert (folder / link).exists(), link
