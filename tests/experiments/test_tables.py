"""The page of tables: worked out from what is kept, and the same bytes for the same runs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from bench.bittoken.training.recipe import load_recipe
from bench.errors import BadInput
from bench.jsonl import write_json
from experiments.cells import read_kept
from experiments.kept import RESULTS, Asked, Bounded, Scores, TaskScore
from experiments.layout import LAYOUT, read_layout
from experiments.tables import main, write_tables
from tests.experiments.tiny import ROOT


def keep(
    folder: Path,
    name: str,
    tasks: Mapping[str, tuple[float, float | None]],
    tokens_a_question: float = 47.1,
) -> Path:
    """A kept run by its figures: exact match and log-sMAPE of each task."""
    seed = name.rpartition("-s")[2]
    encoding = "digit" if "digit" in name else "bittoken"
    changes = (f"name={name}", f"training.seed={seed}")
    recipe = load_recipe(ROOT / f"recipes/budget/multi-{encoding}.toml", changes)
    scores = Scores(
        run=name,
        tasks={
            task: TaskScore(500, around(exact), None if smape is None else around(smape))
            for task, (exact, smape) in tasks.items()
        },
        dataset=Asked("short", "abcdef" * 10),
        prompt=Asked("paper", "fedcba" * 10),
        protocol="exact",
        model_sha256="012345" * 10,
        parameters=1_600_000,
        tokens=4_990_000,
        seconds=1234.4,
        tokens_a_question=tokens_a_question,
        best_step=64,
        device="a_test CPU, 2 cores",
        threads=1,
        torch="2.0",
        version="0.1.0",
        recipe=recipe,
    )
    write_json(folder / name / "scores.json", scores)
    lines = [
        {"step": step, "tokens": 2048 * step, "tasks": {task: {"score": 0.1} for task in tasks}}
        for step in (64, 128)
    ]
    text = "\n".join(json.dumps(line) for line in lines) + "\n"
    (folder / name / "metrics.jsonl").write_text(text)
    return folder / name


def around(value: float) -> Bounded:
    return Bounded(value, value - 2, value + 2)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "trained"
    keep(folder, "multi-digit-s1", {"minmax": (70.0, None), "addition": (20.0, 40.0)})
    keep(folder, "multi-bittoken-s1", {"minmax": (60.0, None), "addition": (10.0, 30.0)})
    keep(folder, "multi-bittoken-s2", {"minmax": (64.0, None), "addition": (12.0, 36.0)}, 46.8)
    return folder


def cells(page: str, section: str) -> dict[tuple[str, str], list[str]]:
    """The rows of a section's table by task and metric, without these two."""
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return {(row[0], row[1]): row[2:] for row in rows}


def test_regenerating_gives_the_same_bytes(kept: Path, tmp_path: Path) -> None:
    first = {path.relative_to(kept): path.read_bytes() for path in write_tables(kept)}
    again = tmp_path / "again"
    shutil.copytree(kept, again)
    second = {path.relative_to(again): path.read_bytes() for path in write_tables(again)}
    assert first == second
    assert set(map(str, first)) == {"README.md", "curves/multi.png", "curves/multi.svg"}


def test_one_seed_has_its_interval_and_several_their_mean_and_each(kept: Path) -> None:
    write_tables(kept)
    rows = cells((kept / "README.md").read_text(), "Six tasks together")
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
    assert rows["Tokens a question", ""][digit] == rows["Tokens a question", ""][bittoken] == "47"
    assert rows["Best step", ""][digit] == "64"


def test_the_papers_figures_stand_beside_and_what_was_not_run_is_empty(kept: Path) -> None:
    write_tables(kept)
    page = (kept / "README.md").read_text()
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


def test_the_caption_tells_how_the_figures_came_about(kept: Path) -> None:
    write_tables(kept)
    page = (kept / "README.md").read_text()
    said = page.partition("**Measured** ")[2].partition("\n")[0]
    assert said == (
        "at a budget of 5,000,000 tokens a training (2,048 a step); 1,600,000 parameters "
        "(3 × 256, 4 heads); 1,234 s of training on a\\_test CPU, 2 cores, 1 thread; seeds 1, 2; "
        "at most 4 digits an operand, in training and in the dataset `short@abcdef`, 500 items a "
        "task; numbench 0.1.0, torch 2.0."
    )
    assert page.count("The two are not measured alike (above).") == 8
    assert "Nothing of this table has been run yet" in page


def test_a_paragraph_by_hand_stands_below_its_table(kept: Path) -> None:
    (kept / "findings.md").write_text("By table.\n\n## multi\n\nBits lead.\n\n## solo\n\nAlone.\n")
    write_tables(kept)
    page = (kept / "README.md").read_text()
    section = page.partition("## Six tasks together")[2].partition("\n## ")[0]
    assert "**What it shows.** Bits lead.\n" in section
    (kept / "findings.md").write_text("## mutli\n\nBits lead.\n")
    with pytest.raises(BadInput, match="no table 'mutli'"):
        write_tables(kept)


def test_seeds_of_different_recipes_have_no_mean(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kept / "multi-bittoken-s2" / "scores.json"
    scores = msgspec.json.decode(path.read_bytes())
    scores["recipe"]["training"]["tokens"] = 7
    path.write_bytes(msgspec.json.encode(scores))
    assert main(["--out", str(kept)]) == 2
    said = capsys.readouterr().err
    assert "multi-bittoken-s1 and multi-bittoken-s2 differ in training.tokens" in said


def test_a_run_by_the_name_of_another_seed_is_refused(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = json.loads((kept / "multi-bittoken-s2/scores.json").read_text())
    scores["run"] = "multi-bittoken-s3"
    write_json(kept / "multi-bittoken-s3/scores.json", scores)
    assert main(["--out", str(kept)]) == 2
    assert "is of run 'multi-bittoken-s3' and seed 2" in capsys.readouterr().err


def test_a_folder_without_runs_has_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path / "typo")]) == 2
    assert "no run is kept here" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_a_column_that_the_paper_has_not_is_refused(tmp_path: Path) -> None:
    layout = tmp_path / "layout.toml"
    layout.write_text(LAYOUT.read_text().replace('published = "FoNE"', 'published = "FONE"', 1))
    with pytest.raises(BadInput, match="multi: no column 'FONE' in local_multitask"):
        read_layout(layout)


def test_the_documented_speed_is_that_of_the_logs(tmp_path: Path) -> None:
    runs = [run for seeds in read_kept(ROOT / RESULTS).values() for run in seeds]
    speeds = sorted(run.tokens / run.seconds for run in runs)
    minutes = sorted(run.seconds / 60 for run in runs)
    sizes = sorted(run.parameters / 1e6 for run in runs)
    row = (
        f"| `experiments`, {sizes[0]:.1f}–{sizes[-1]:.1f}M parameters, 1.5 or 5 million tokens "
        f"| one core of a CPU | {round(speeds[0], -2):,.0f}–{round(speeds[-1], -2):,.0f} "
        f"| {minutes[0]:.0f}–{minutes[-1]:.0f} min | | measured |"
    )
    assert row in (ROOT / "docs/training.md").read_text()


def test_curves_name_those_they_show_and_go_with_them(kept: Path) -> None:
    write_tables(kept)
    drawn = (kept / "curves" / "multi.svg").read_text()
    assert "BitToken" in drawn and "Single digit" in drawn and "xVal" not in drawn
    shutil.rmtree(kept / "multi-digit-s1")
    write_tables(kept)
    assert not list((kept / "curves").iterdir())
    assert "curves/multi.png" not in (kept / "README.md").read_text()


def test_the_committed_page_is_what_the_tool_writes_from_the_committed_runs(tmp_path: Path) -> None:
    again = tmp_path / "trained"
    shutil.copytree(ROOT / RESULTS, again)
    write_tables(again)
    committed = ROOT / RESULTS / "README.md"
    assert (again / "README.md").read_text() == committed.read_text()
    for link in re.findall(r"\]\(([^)]+)\)", committed.read_text()):
        assert (ROOT / RESULTS / link).exists(), link
