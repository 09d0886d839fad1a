"""`bittoken encodings`: its files, its terminal output and its errors."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

from bittoken.desiderata.measures import MEASURES
from bittoken.desiderata.report import PUBLISHED_NOTE, measure_encodings
from bittoken.encodings import ENCODINGS
from bittoken.vocabulary import ENCODING_NAMES
from numbench.cli import main
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings

pytestmark = pytest.mark.slow

FILES = (
    "encodings.md",
    "encodings.csv",
    "tokens_per_sample.csv",
    "encodings.png",
    "encodings.svg",
)


def _numbench(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"{code}; from numbench.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "small"
    generate(DatasetSettings(name="small", size=12, seed=3), folder)
    return folder


@pytest.fixture(scope="module")
def report(dataset: Path) -> tuple[Path, str]:
    """Run the command; return the output folder and the printed text."""
    out = dataset.parent / "out"
    process = _numbench(
        "import os; os.environ['COLUMNS'] = '80'",
        "encodings", "--dataset", str(dataset), "--out", str(out),
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    return out, process.stdout


def test_all_files_are_written_and_named(report: tuple[Path, str]) -> None:
    out, printed = report
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert all(str(out / name) in printed for name in FILES)


def test_printed_table_fits_80_columns_without_truncation(report: tuple[Path, str]) -> None:
    out, printed = report
    lines = [line for line in printed.splitlines() if not line.startswith(str(out))]
    assert max(map(len, lines)) <= 80
    assert "…" not in printed
    for measure in MEASURES:
        assert any(measure.name in line for line in lines)
    for encoding in ENCODINGS.values():
        assert all(word in printed for word in encoding.display.split())
    assert PUBLISHED_NOTE in printed
    assert "34.1 + 8.5" in printed


def test_csv_has_a_row_per_measure_and_a_column_per_encoding(report: tuple[Path, str]) -> None:
    with (report[0] / "encodings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["measure"] for row in rows] == [measure.name for measure in MEASURES]
    assert list(rows[0]) == ["desideratum", "measure", *ENCODING_NAMES]
    by_name = {row["measure"]: row for row in rows}
    assert float(by_name["exact, dataset %"]["bittoken"]) == 100
    assert by_name["in FP8 %"]["digit"] == ""
    assert set(list(by_name["trained score %"].values())[2:]) == {""}


def test_published_counts_are_in_the_page_but_not_in_the_csv(report: tuple[Path, str]) -> None:
    page = (report[0] / "encodings.md").read_text()
    measured, published = page.split(PUBLISHED_NOTE)
    assert "60.5 + 16.0" in published and "60.5 + 16.0" not in measured
    with (report[0] / "tokens_per_sample.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["encoding"] for row in rows} >= {"bittoken", "digit"}
    assert len(rows) == 9 * 5


def test_figure_contains_all_colours_and_no_date(report: tuple[Path, str]) -> None:
    pixels = imread(report[0] / "encodings.png")
    assert pixels.shape[1] == 1400
    rgb = (pixels[..., :3] * 255).round().astype(int)
    colours = set((rgb @ [1 << 16, 1 << 8, 1]).ravel().tolist())
    assert {int(c, 16) for c in ("0072B2", "D55E00", "009E73", "E69F00", "CC79A7")} <= colours
    svg = (report[0] / "encodings.svg").read_text()
    assert svg.count("<path") > 100 and not re.search(r"\d{4}-\d{2}-\d{2}T", svg)


def test_files_are_reproducible_except_for_trained_scores(
    dataset: Path, report: tuple[Path, str], tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("encoding,task,score\nbittoken,addition,97.7\n")
    again = measure_encodings(tmp_path / "out", dataset, scores)
    assert [path.name for path in again.paths] == list(FILES)
    assert again.values["trained score %"]["bittoken"] == 97.7
    for path in again.paths:
        before = (report[0] / path.name).read_bytes().splitlines()
        after = path.read_bytes().splitlines()
        assert len(before) == len(after)
        changed = [b for a, b in zip(before, after, strict=True) if a != b]
        if path.name in ("encodings.md", "encodings.csv"):
            assert len(changed) == 1 and b"trained score" in changed[0] and b"97.7" in changed[0]
        else:
            assert not changed


def test_missing_torch_error_names_the_extra(tmp_path: Path) -> None:
    process = _numbench(
        "import sys; sys.modules['torch'] = None", "encodings", "--out", str(tmp_path)
    )
    assert process.returncode == 2
    assert process.stderr == (
        "numbench: bittoken encodings needs an extra: pip install 'numbench[local]'\n"
    )
    assert not any(tmp_path.iterdir())


def test_help_does_not_import_heavy_packages() -> None:
    code = (
        "import sys, atexit; atexit.register(lambda: print([name for name in sys.modules "
        "if name in ('torch', 'numpy', 'matplotlib', 'pyarrow')]))"
    )
    process = _numbench(code, "encodings", "--help")
    assert "--trained" in process.stdout and process.stdout.splitlines()[-1] == "[]"


def test_missing_score_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.csv"
    arguments = ["encodings", "--out", str(tmp_path / "out"), "--trained", str(missing)]
    monkeypatch.setattr(sys, "argv", ["numbench", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    assert str(missing) in capsys.readouterr().err
