"""The examples of docs/bittoken.md work as printed there."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from bittoken.encodings import DIGITS_PER_TOKEN, ENCODINGS
from tests.support.command_line import CommandLine, finish, install

PAGE = (Path(__file__).parents[2] / "docs" / "bittoken.md").read_text(encoding="utf-8")
SHORT = "--set training.tokens=6_000 --set training.validation_items=32"
FILE = re.compile(r"^`([\w.]+)`:\n\n```(?:python|toml)\n(.*?)^```", re.M | re.S)


def section(heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.split(f"# {heading}\n")[1], flags=re.M)[0]


def run(
    heading: str, folder: Path, packages: Path | None = None, **additional: str
) -> dict[str, str]:
    """Run the commands of a section in a folder; return what each prints.

    additional: more arguments, by subcommand.
    """
    printed = {}
    for line in re.findall(r"^    ((?:numbench|bittoken) .+)$", section(heading), re.M):
        program, *arguments = shlex.split(line)
        arguments += shlex.split(additional.get(arguments[0], ""))
        printed[line] = CommandLine(folder, packages, program)(*arguments)
    return printed


def test_every_encoding_is_described() -> None:
    for name in (*ENCODINGS, *DIGITS_PER_TOKEN):
        assert f"`{name}`" in section("The encodings"), name


@pytest.mark.slow
def test_an_encoding_works_in_a_model_of_ones_own() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", section("An encoding in your own model"), re.S)
    done = finish(sys.executable, "-c", code)
    (percent,) = re.findall(r"^(\d+)% of the last 256 answers are exact$", done.stdout, re.M)
    assert 85 <= int(percent) <= 95


@pytest.mark.slow
def test_the_encoding_of_another_package_is_trained(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, content in FILE.findall(section("Add an encoding")):
        (source / name).write_text(content)
    run("Add an encoding", tmp_path, install(source, tmp_path / "packages"), train=SHORT)
    assert (tmp_path / "float16" / "checkpoint" / "model.safetensors").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("without_figures")
def test_a_trained_network_is_evaluated_beside_gpt_5(tmp_path: Path) -> None:
    trained = run("Train a network", tmp_path, train=SHORT)
    assert "cpu " in trained["bittoken train"]
    assert "harmonic mean" in trained["bittoken train cpu"]
    printed = run("Evaluate a network", tmp_path, run="--limit 4", generate="--size 20")
    reports = [text for line, text in printed.items() if line.startswith("numbench report")]
    assert "GPT 5 " in reports[0] and "numbench small" in reports[1]
