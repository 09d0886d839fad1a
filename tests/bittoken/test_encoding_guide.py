"""The package of docs/encodings.md works as printed there: trained, evaluated and measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bittoken.encodings import ENCODINGS
from tests.command_line import CommandLine, install

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "encodings.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w.]+)`:\n\n```(?:python|toml)\n(.*?)^```", re.M | re.S)


def test_the_package_of_the_guide_works(tmp_path: Path) -> None:
    guide = PAGE.split("## Add an encoding\n")[1]
    source = tmp_path / "source"
    source.mkdir()
    for name, content in FILE.findall(guide):
        (source / name).write_text(content)
    numbench = CommandLine(tmp_path, install(source, tmp_path / "packages"))
    commands = [shlex.split(line) for line in re.findall(r"^    numbench (.+)$", guide, re.M)]
    printed = {command[0]: numbench(*command) for command in commands}
    assert "9 of 9" in printed["train"]
    assert (tmp_path / "float16" / "checkpoint" / "model.safetensors").is_file()
    assert "8 answered" in printed["run"]
    assert "precision" in printed["encodings"]
    header = (tmp_path / "results" / "encodings" / "encodings.csv").read_text().splitlines()[0]
    assert header.split(",")[-3:] == ["float16", "digit", "subword"]
    assert b"</svg>" in (tmp_path / "results" / "encodings" / "encodings.svg").read_bytes()


def test_every_encoding_is_described() -> None:
    for name in ENCODINGS:
        assert f"| `{name}` |" in PAGE, name
