"""`numbench encodings`: files, terminal, and what it says where it cannot work."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from bench.bittoken.desiderata import measure_encodings
from bench.bittoken.desiderata.table import MEASURES
from bench.bittoken.vocabulary import ENCODING_NAMES
from bench.dataset.generate import generate
from bench.dataset.settings import Settings

FILES = (
    "encodings.md",
    "encodings.csv",
    "tokens_per_sample.csv",
    "encodings.png",
    "encodings.svg",
)


def _numbench(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"{code}; from bench.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "small"
    generate(Settings(name="small", size=12, seed=3), folder)
    return folder


@pytest.fixture(scope="module")
def done(dataset: Path) -> tuple[Path, str]:
    """The output folder and what was printed."""
    out = dataset.parent / "out"
    run = _numbench(
        "import os; os.environ['COLUMNS'] = '80'",
        "encodings", "--dataset", str(dataset), "--out", str(out),
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    return out, run.stdout


def test_all_files_are_written_and_named(done: tuple[Path, str]) -> None:
    out, printed = done
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert all(str(out / name) in printed for name in FILES)


def test_the_table_fits_80_columns_and_loses_nothing(done: tuple[Path, str]) -> None:
    out, printed = done
    lines = [line for line in printed.splitlines() if not line.startswith(str(out))]
    assert max(map(len, lines)) <= 80
    assert "…" not in printed
    for measure in MEASURES:
        assert any(measure.name in line for line in lines)
    assert "published (paper)" in printed
    assert "34.1 + 8.5" in printed


def test_csv_has_a_row_per_measure_and_a_column_per_encoding(done: tuple[Path, str]) -> None:
    with (done[0] / "encodings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["measure"] for row in rows] == [measure.name for measure in MEASURES]
    assert list(rows[0]) == ["desideratum", "measure", *ENCODING_NAMES]
    by_name = {row["measure"]: row for row in rows}
    assert float(by_name["exact, dataset %"]["bittoken"]) == 100
    assert by_name["in FP8 %"]["digit"] == ""
    assert set(list(by_name["trained score %"].values())[2:]) == {""}


def test_published_counts_stand_in_the_page_and_in_no_csv(done: tuple[Path, str]) -> None:
    page = (done[0] / "encodings.md").read_text()
    measured, published = page.split("## published (paper)")
    assert "60.5 + 16.0" in published and "60.5 + 16.0" not in measured
    with (done[0] / "tokens_per_sample.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["encoding"] for row in rows} >= {"bittoken", "digit"}
    assert len(rows) == 9 * 5


def test_the_figure_has_a_picture_in_it(done: tuple[Path, str]) -> None:
    pixels = imread(done[0] / "encodings.png")
    assert pixels.shape[1] == 1400
    colours = np.unique((pixels[..., :3] * 255).round().astype(int).reshape(-1, 3), axis=0)
    for colour in ("0072B2", "D55E00", "009E73", "E69F00", "CC79A7"):
        wanted = [int(colour[at : at + 2], 16) for at in (0, 2, 4)]
        assert (colours == wanted).all(axis=1).any(), colour
    svg = (done[0] / "encodings.svg").read_text()
    assert svg.count("<path") > 100 and not re.search(r"\d{4}-\d{2}-\d{2}T", svg)


def test_the_same_numbers_give_the_same_bytes(dataset: Path, done: tuple[Path, str]) -> None:
    again = measure_encodings(dataset.parent / "again", dataset)
    assert [path.name for path in again.written] == list(FILES)
    for path in again.written:
        assert path.read_bytes() == (done[0] / path.name).read_bytes()


def test_trained_scores_fill_the_last_row(dataset: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("encoding,task,score\nbittoken,addition,97.7\n")
    measured = measure_encodings(tmp_path / "out", dataset, scores)
    assert measured.figures["trained score %"]["bittoken"] == 97.7
    assert "97.7" in (tmp_path / "out" / "encodings.md").read_text()


def test_without_torch_it_says_what_to_install(tmp_path: Path) -> None:
    run = _numbench("import sys; sys.modules['torch'] = None", "encodings", "--out", str(tmp_path))
    assert run.returncode == 2
    assert run.stderr == (
        "numbench: numbench encodings needs an extra: pip install 'numbench[local]'\n"
    )
    assert not any(tmp_path.iterdir())


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, atexit; atexit.register(lambda: print([name for name in sys.modules "
        "if name in ('torch', 'numpy', 'matplotlib', 'pyarrow')]))"
    )
    run = _numbench(code, "encodings", "--help")
    assert "--trained" in run.stdout and run.stdout.splitlines()[-1] == "[]"


def test_a_missing_table_of_scores_is_wrong_use(dataset: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    run = _numbench("pass", "encodings", "--out", str(tmp_path / "o"), "--trained", str(missing))
    assert run.returncode == 2 and str(missing) in run.stderr
    assert "Traceback" not in run.stderr
