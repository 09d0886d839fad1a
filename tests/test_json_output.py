"""`--json`: one object on stdout, with the typed result of the command, also after an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from docs._build.reference import RESULTS
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import TASKS
from tests.support.case_tables import each_row, read_lines
from tests.support.command_line import Call
from tests.tasks.gcd_task import GCD


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    generate(DatasetSettings("mine", ("mean",), size=2), folder / "datasets" / "mine")
    return folder


@each_row(__file__, "json_outputs")
@pytest.mark.usefixtures("without_figures")
def test_stdout_is_the_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call,
    command: str, code: int, known: dict[str, Any],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    monkeypatch.setitem(TASKS, "gcd", GCD)
    printed = call(*command.split(), "--json")
    output = json.loads(printed.out)
    assert printed.out.count("\n") == 1 and printed.code == output["exit_code"] == code
    assert (output["schema"], output["command"]) == (1, command.split()[0])
    assert (output["error"] is None) == (code == 0)
    if code:
        assert output["error"] in printed.err
    assert (output["result"] is None) == (not known)
    for path, expected in known.items():
        value = output["result"]
        for step in path.split("."):
            value = value[int(step) if isinstance(value, list) else step]
        assert value == expected, path


def test_every_command_with_the_option_is_among_the_cases() -> None:
    _, *cases = read_lines(__file__, "json_outputs")
    assert {command.split()[0] for command, _, _ in cases} == RESULTS.keys()
