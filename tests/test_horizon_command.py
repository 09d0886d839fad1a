"""`numbench horizon` and its function in the Python API, from end to end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.horizon.scripted_model import reply
from tests.support import servers
from tests.support.command_line import CommandLine
from tests.support.runs import KEY
from tests.support.servers import serve

pytestmark = pytest.mark.slow

QUICK = ("--tasks", "long_sum,copy", "--precision", "0.4", "--max-size", "40", "--max-items", "40")


@pytest.fixture
def server() -> Iterator[servers.Server]:
    with serve(lambda received: reply(received, 9.0)) as running:
        yield running


@pytest.fixture
def numbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return CommandLine(tmp_path, None)


def width(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_a_measurement_prints_its_horizons_and_resumes(
    numbench: CommandLine, server: servers.Server
) -> None:
    arguments = ("horizon", "--model", "openai/some", "--base-url", server.url, *QUICK)
    plan = numbench(*arguments, "--dry-run", environment={"OPENAI_API_KEY": ""})
    assert not server.received and not (numbench.folder / "results").exists()
    assert re.search(r"Long sum +15 ", plan) and "sizes above 38 of Long sum, Copy" in " ".join(
        plan.split()
    )
    assert width(plan) <= 80
    first = numbench(*arguments)
    asked = len(server.received)
    assert f"results/openai-some_default_horizon: {asked} answered now, 0 done earlier" in first
    assert "sizes above 38 of Long sum, Copy" in " ".join(first.split())
    table = first[first.index(" correct answers, with 95%") : first.index("next:")]
    assert "Long sum" in table and "elements" in table
    assert width(table[: table.index("Not asked")]) <= 80
    again = numbench(*arguments)
    assert f"0 answered now, {asked} done earlier" in again and len(server.received) == asked
    assert table in again
    assert f"Answered already: {asked} requests" in numbench(*arguments, "--dry-run")
    shown = numbench("show", "results/openai-some_default_horizon", "--limit", "1")
    assert re.search(r"^long_sum-\d+-0 ", shown, re.M)


@pytest.mark.usefixtures("without_figures")
def test_other_commands_refuse_a_measurement(numbench: CommandLine, server: servers.Server) -> None:
    numbench("horizon", "--model", "openai/some", "--base-url", server.url, *QUICK, "--out", "a")
    (numbench.folder / "a2").mkdir()
    for path in (numbench.folder / "a").glob("*.json*"):
        (numbench.folder / "a2" / path.name).write_bytes(path.read_bytes())
    refused = numbench("merge", "a", "a2", "--out", "b", code=2)
    assert "holds a horizon measurement" in refused
    numbench("report", "a", "--out", "page")
    assert (numbench.folder / "page" / "report.html").is_file()
