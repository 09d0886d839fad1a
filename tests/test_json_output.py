"""`--json`: one object on stdout, with the typed result of the command, also after an error."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from docs._build.reference import RESULTS
from numbench.cli import main
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import TASKS
from tests.tasks.gcd_task import GCD

BASELINE = "--model baseline/float32"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    generate(DatasetSettings("mine", ("mean",), size=2), folder / "datasets" / "mine")
    return folder


CASES: list[tuple[str, int, dict[tuple[str | int, ...], Any]]] = [
    (f"run {BASELINE} --tasks addition --limit 3 --dry-run", 0, {(0, "total", "requests"): 3}),
    (
        f"run {BASELINE} --tasks addition --limit 3 --out run", 0,
        {(0, "path"): "run", (0, "answered"): 3, (0, "cost"): None, (0, "failure"): None},
    ),
    (
        "show run --limit 1", 0,
        {
            ("addition", "total"): 3, ("addition", "answers", 0, "item", "task"): "addition",
            ("addition", "answers", 0, "score", "protocol"): "exact",
            ("addition", "answers", 0, "response", "attempts"): 1,
        },
    ),
    ("verify run", 0, {(0, "path"): "run", (0, "is_valid"): True}),
    ("verify run --complete", 1, {(0, "is_valid"): False}),
    (
        "compare run run --partial", 1,
        {("measure",): "scores", ("old", "model"): "baseline/float32"},
    ),
    ("models gpt-5", 0, {(0, "name"): "gpt-5", (0, "levels", 0): "minimal"}),
    ("datasets", 0, {(0, "dataset"): "v1", (0, "questions"): 4500, (-1, "dataset"): "mine"}),
    ("tasks", 0, {(0, "task"): "minmax", (-1, "task"): "gcd", (-1, "group"): "plugin"}),
    ("audit v1", 0, {("checked", "addition"): 500, ("wrong",): {}}),
    ("prompts", 0, {(0, "prompts"): "paper"}),
    (
        f"horizon {BASELINE} --tasks copy --max-items 12 --max-size 32 --out sizes", 0,
        {("path",): "sizes", ("horizons", "copy", "unit"): "digits"},
    ),
    (
        f"memory-test {BASELINE} --tasks addition --limit 8 --out memory", 0,
        {("registration", "pairs"): 8, ("folder",): "memory", ("rows", -1, "task"): "overall"},
    ),
    ("run --limit 3", 2, {}),
    ("models no-such-model", 2, {}),
    ("compare run", 2, {}),
    ("show run --tasks mean", 2, {}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "known"), CASES, ids=[case[0] for case in CASES])
def test_stdout_is_the_result(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    code: int,
    known: dict[tuple[str | int, ...], Any],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(TASKS, "gcd", GCD)
    monkeypatch.setattr(sys, "argv", ["numbench", *command.split(), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    output = json.loads(printed.out)
    assert printed.out.count("\n") == 1 and ended.value.code == output["exit_code"] == code
    assert (output["schema"], output["command"]) == (1, command.split()[0])
    assert (output["error"] is None) == (code == 0)
    if code:
        assert output["error"] in printed.err
    assert (output["result"] is None) == (not known)
    for path, expected in known.items():
        value = output["result"]
        for step in path:
            value = value[step]
        assert value == expected, path


def test_every_command_with_the_option_is_among_the_cases() -> None:
    assert {command.split()[0] for command, _, _ in CASES} == RESULTS.keys()
