"""Options of a run: declared once, the same on the command line, in Python and in suite files."""

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import numbench as nb
from numbench.api import _takes
from numbench.cli import app
from numbench.cli.options import CommandWithPanels, given_values, takes_options_of
from numbench.errors import BadInput
from numbench.runner.execution import run as execute
from numbench.runner.options import field_docs, options_of
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.runner.suite import suite_file
from tests.support import servers
from tests.support.case_tables import each_row, read_lines
from tests.support.extended_spec import ExtendedSpec
from tests.support.runs import QUICK
from tests.support.servers import serve

SECRET = "0f8fad5b-d9cb-469f-a165-70867728950e"


def test_one_field_adds_an_option_to_the_command_line_and_to_python() -> None:
    specs: list[Any] = []
    extended = typer.Typer(rich_markup_mode=None)

    @extended.command(cls=CommandWithPanels)
    @takes_options_of(ExtendedSpec)
    def _(**values: Any) -> None:
        specs.append(ExtendedSpec(**given_values(values)))

    text = CliRunner().invoke(extended, "--help").stdout
    assert "--top-p P Nucleus sampling." in " ".join(text.split())
    result = CliRunner().invoke(
        extended,
        "--model m --top-p 0.5 --timeout 5m --tasks addition --param a.b=1 --api responses "
        "--no-stream --retry error,empty --batch --reasoning 4096 --header X-A=b",
    )
    assert result.exit_code == 0, result.output
    call = _takes(ExtendedSpec)(specs.append)
    call(
        "m",
        top_p=0.5,
        timeout=300.0,
        tasks=("addition",),
        params={"a": {"b": 1}},
        api="responses",
        stream=False,
        retry=["empty", "error"],
        batch=True,
        reasoning="4096-tokens",
        headers={"X-A": "b"},
    )
    assert specs[0] == specs[1] and specs[0].top_p == 0.5
    assert "top_p" in inspect.signature(call).parameters
    assert "top_p: Nucleus sampling." in str(call.__doc__)


@each_row(__file__, "models_of_each_format")
def test_one_field_sends_an_option_with_every_request_and_records_it(
    dataset: Path, tmp_path: Path, model: str, api: Any
) -> None:
    with serve(servers.plain) as server:
        common: dict[str, Any] = {"dataset": dataset, "base_url": server.url, "stream": False}
        spec = ExtendedSpec(model, out=tmp_path / "run", api=api, top_p=0.5, **common)
        execute(spec, policy=QUICK)
        bodies = [each.body for each in server.received]
        with pytest.raises(BadInput, match="top_p"):
            execute(replace(spec, top_p=0.6), policy=QUICK)
    sent = [
        each["generationConfig"]["topP"] if "gemini" in model else each["top_p"] for each in bodies
    ]
    assert len(sent) == 10 and set(sent) == {0.5}
    with pytest.raises(BadInput, match="runs in this process: omit --top-p"):
        execute(ExtendedSpec("baseline/float64", top_p=0.5), policy=QUICK)


def test_the_help_shows_the_options_in_panels() -> None:
    text = CliRunner().invoke(app, ["run", "--help"], terminal_width=80).stdout
    panels = text[text.index("\nModel:") :].split("\n\n")
    names = [panel.strip().partition(":")[0] for panel in panels]
    assert names == ["Model", "Questions", "Sampling", "Limits", "Server", "Options"]


@pytest.mark.parametrize(
    ("function", "kind"),
    [(nb.run, RunSpec), (nb.plan, RunSpec), (nb.measure_horizons, HorizonSpec)],
)
def test_the_python_api_has_the_options_and_explains_them(
    function: Callable[..., Any], kind: type[RunSpec]
) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters == inspect.signature(kind).parameters
    assert parameters.keys() == {"on_progress", *(each.name for each in options_of(kind))}
    for each in options_of(kind):
        assert f"{each.name}: {field_docs(kind)[each.name]}" in str(function.__doc__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        function("m", color="red")


@pytest.mark.parametrize(
    ("option", "given", "value"),
    [
        *map(tuple, read_lines(__file__, "texts_of_options")[1:]),
        ("limit", np.int64(5), 5),
        ("retry", "error, empty", {"error", "empty"}),
        ("out", Path("a"), Path("a")),
    ],
)
def test_python_and_suite_files_take_values_and_the_text_of_the_command_line(
    tmp_path: Path, option: str, given: Any, value: Any
) -> None:
    value = tuple(value) if isinstance(value, list) else value
    assert getattr(RunSpec("m", **{option: given}), option) == value
    if option not in ("out", "time_limit", "reasoning"):
        file = tmp_path / "suite.toml"
        text = json.dumps(given, default=int)
        file.write_text(f'[[matrix]]\nmodel = "openai/x"\n{option} = {text}\n')
        (spec,) = suite_file(file, {}, {})
        assert getattr(spec, option) == value


@each_row(__file__, "wrong_values")
def test_a_wrong_value_is_refused_at_once_in_one_line(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        RunSpec(**{"model": "m"} | options)
    assert "\n" not in str(refused.value) and SECRET not in str(refused.value)


def test_what_may_be_secret_is_not_in_the_repr() -> None:
    spec = RunSpec(
        "openai/x",
        base_url=f"http://127.0.0.1:1/{SECRET}/v1",
        headers={"X-A": SECRET},
        params={"api_key": SECRET},
    )
    plan = nb.plan("openai/x", limit=1, base_url=spec.base_url, headers=spec.headers,
                   params=spec.params, out="nowhere")  # fmt: skip
    assert SECRET not in repr(spec) + repr(plan)
