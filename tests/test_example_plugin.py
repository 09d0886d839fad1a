"""The example plugin, installed as its README says, works with every command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, install

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "numbench-example"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with nothing but the plugin."""
    folder = tmp_path_factory.mktemp("packages")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "example")
    return install(Path(source), folder)


@pytest.fixture(scope="module")
def numbench(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line with the plugin, and a dataset of its task and two of the paper's."""
    command = CommandLine(tmp_path_factory.mktemp("with"), packages)
    command("generate", "--name", "mixed", "--size", "6", "--tasks", "addition,sorting,modulo")
    for arguments in (
        ("--model", "baseline/float64"),
        ("--model", "echo/last", "--reasoning", "none"),
        ("--model", "parrot"),
    ):
        command("run", *arguments, "--dataset", "mixed")
    return command


def test_every_command_accepts_the_task(numbench: CommandLine) -> None:
    folder, run = numbench.folder, "results/baseline-float64_none_mixed"
    items = [*map(json.loads, (folder / "datasets/mixed/modulo.jsonl").read_text().splitlines())]
    assert len(items) == 6
    for item in items:
        a, b = map(int, item["operands"])
        assert item["prompt"] == f"What is {a} mod {b}?"
        assert int(item["answer"]) == a - b * (a // b)
    assert "Mod" in numbench("audit", "mixed")
    assert "0 of 6 questions" in numbench("show", run, "--tasks", "modulo", "--wrong")
    plan = numbench("run", "--model", "parrot", "--dataset", "mixed", "--out", "new", "--dry-run")
    assert "$1" in plan
    numbench("report", "--out", "report")
    assert "Mod" in (folder / "report" / "report.html").read_text()
    numbench("compare", run, run)
    numbench("export", "--to", "huggingface", "--out", "exported", "mixed")
    numbench("demo", "--dataset", "mixed", "--out", "demo")
