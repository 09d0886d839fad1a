"""Compare v1 and study-like with the published items: -m experiments.study_calibration FOLDER."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.command_line import run_command
from experiments.study_calibration.expected import Items, compute_cells, mean_offsets
from experiments.study_calibration.figures import plot_offsets
from experiments.study_calibration.page import (
    EXPECTED_HEADER,
    OFFSETS_HEADER,
    TESTS_HEADER,
    expected_rows,
    feature_rows,
    offset_rows,
    render_page,
)
from experiments.study_calibration.responses import Study, read_study
from experiments.study_calibration.two_sample import compare_items
from numbench.calibration.features import printed_number
from numbench.csv_files import encode_csv
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import Dataset, open_dataset
from numbench.jsonl import write_atomically
from numbench.records import Item
from numbench.tasks.study_profile import NAME

HERE = Path(__file__).parent
RESULTS = Path("results/comparability")


def render(study: Study, study_like: Items) -> dict[str, bytes]:
    """Return the content of every file, by its name."""
    published = study.items
    datasets = {"v1": open_dataset("v1").by_task, NAME: study_like}
    cells = compute_cells(study.scores, datasets)
    offsets = mean_offsets(cells)
    tests = {
        name: [test for task in published for test in compare_items(published[task], items[task])]
        for name, items in datasets.items()
    }
    faults = {
        "ones": _count(published["exponentiation"], lambda item: item.operands[1] in ("1", "-1")),
        "zeros": _count(published["mean"], lambda item: item.answer == "0"),
        "labels": study.wrong_labels,
        "six": _count(published["division"], lambda item: _divisor_digits(item) == 6),
        "seven": _count(published["division"], lambda item: _divisor_digits(item) == 7),
    }
    text = (HERE / "page.md").read_text(encoding="utf-8")
    return {
        "README.md": render_page(text, cells, offsets, tests, faults).encode(),
        "offsets.svg": plot_offsets(cells, offsets),
        "expected.csv": encode_csv([EXPECTED_HEADER, *expected_rows(cells)]).encode(),
        "offsets.csv": encode_csv([OFFSETS_HEADER, *offset_rows(offsets)]).encode(),
        "two-sample.csv": encode_csv([TESTS_HEADER, *feature_rows(tests)]).encode(),
    }


def _divisor_digits(item: Item) -> int:
    return printed_number(item.operands[1]).digits


def _count(items: Sequence[Item], is_faulty: Callable[[Item], bool]) -> int:
    return sum(map(is_faulty, items))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.study_calibration", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="the study's files (frontier_results)")
    parser.add_argument(
        "--study-like", type=Path, help="folder of that dataset; default: generate it"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="default: %(default)s")
    options = parser.parse_args(arguments)

    def write() -> int:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in build(options.folder, options.study_like, Path(folder)).items():
                write_atomically(options.out / name, data)
                print(options.out / name)
        return 0

    return run_command(write)


def build(folder: Path, study_like: Path | None, scratch: Path) -> dict[str, bytes]:
    """Return the content of every file from the study's files in `folder`.

    study_like: that dataset; None: it is generated in `scratch`.
    """
    study = read_study(folder)
    if study_like is None:
        settings = DatasetSettings(name=NAME, profile="study")
        study_like = generate(settings, scratch / NAME).dataset.path
    return render(study, Dataset(study_like).by_task)


if __name__ == "__main__":
    sys.exit(main())
