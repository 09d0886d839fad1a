"""Options of a run: declared once, and everywhere."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import numbench as nb
from numbench.api import _with_options_of
from numbench.cli import app
from numbench.cli.options import CommandWithPanels, command, option_values
from numbench.errors import BadInput
from numbench.runner.spec import HorizonSpec, RunSpec, help_of, option, options_of, parse_duration


@dataclass(frozen=True)
class ExtendedSpec(RunSpec):
    """A specification with one more option.

    Options:
      top_p (P): Nucleus sampling.
    """

    top_p: float | None = option(None, "Sampling")


def test_one_line_adds_an_option_to_the_command_line_and_to_python() -> None:
    specs: list[Any] = []

    def extend(**values: Any) -> None:
        """Do it."""
        specs.append(ExtendedSpec(**option_values(ExtendedSpec, values)))

    extended = typer.Typer(rich_markup_mode=None)
    extended.command(cls=CommandWithPanels)(command(extend, ExtendedSpec))
    assert "--top-p P            Nucleus sampling." in CliRunner().invoke(extended, "--help").stdout
    result = CliRunner().invoke(
        extended,
        "--model m --top-p 0.5 --timeout 5m --tasks addition --param a.b=1 --api responses "
        "--no-stream --retry error,empty --batch",
    )
    assert result.exit_code == 0, result.output
    call = _with_options_of(ExtendedSpec)(lambda spec: specs.append(spec))
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
    )
    assert specs[0] == specs[1] and specs[0].top_p == 0.5
    assert "top_p" in inspect.signature(call).parameters
    assert "top_p: Nucleus sampling." in str(call.__doc__)


def test_the_help_has_at_most_30_options_in_panels() -> None:
    text = CliRunner().invoke(app, ["run", "--help"], terminal_width=80).stdout
    panels = text[text.index("\nModel:") :].split("\n\n")
    names = [panel.strip().partition(":")[0] for panel in panels]
    assert names == [
        "Model", "Questions", "Sampling", "Limits", "Server", "Options",
    ]  # fmt: skip
    options = [line for panel in panels for line in panel.splitlines() if line[:3] == "  -"]
    assert len(options) - 1 <= 30  # without --help


@pytest.mark.parametrize(
    ("function", "kind"),
    [(nb.run, RunSpec), (nb.plan, RunSpec), (nb.measure_horizons, HorizonSpec)],
)
def test_the_python_api_has_the_options_and_explains_them(
    function: Any, kind: type[RunSpec]
) -> None:
    assert [*inspect.signature(function).parameters] == [
        field.name
        for field in kind.__dataclass_fields__.values()
        if field.init and field.name != "_"
    ]
    for field in options_of(kind):
        assert f"{field.name}: {help_of(kind)[field.name].text}" in function.__doc__
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        function("m", colour="red")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "--limit 0: give 1 or more"),
        ({"samples": 0}, "--samples 0: give 1 or more"),
        ({"concurrency": 0}, "--concurrency 0: give 1 or more"),
        ({"temperature": float("nan")}, "--temperature nan: give 0 or more"),
        ({"max_cost": float("nan")}, "--max-cost nan: give a number above 0"),
        ({"time_limit": float("inf")}, "--time-limit inf: give a number above 0"),
        ({"temperature": -1.0}, "--temperature -1: give 0 or more"),
        ({"rpm": 5, "batch": True}, "omit it with --batch"),
        ({"retry": ["wrong"]}, "use empty, truncated, refused, error"),
        ({"samples": 1001}, "give at most 1,000"),
    ],
)
def test_a_value_out_of_range_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        RunSpec("m", **options)


@pytest.mark.parametrize("text, seconds", [("90", 90), ("90s", 90), ("1h30m", 5400), ("0.5", 0.5)])
def test_durations_have_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
