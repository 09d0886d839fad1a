"""Models that retire: what is said before, who may be asked after, and who answered at what price.

The provider reroutes requests for a retired model to its successor, as Google does.
"""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import numbench as nb
from numbench.models.catalogue import describe_hosted
from numbench.runner.estimates import published_configurations
from numbench.runner.plan_table import plan_table
from numbench.runner.suite import paper_suite, plan_suite
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.clock import set_date
from tests.support.command_line import CommandLine
from tests.support.runs import small_dataset
from tests.support.servers import serve

CATALOGUE = Path(__file__).with_name("retired_models.toml").read_text()
USAGE = {"prompt_tokens": 100, "completion_tokens": 50}
RUN = ("run", "--model", "acme/old", "--dataset", "data", "--tasks", "addition")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACME_KEY", "sk-acme-0123456789")
    monkeypatch.delenv("NUMBENCH_CATALOGUE", raising=False)
    monkeypatch.chdir(tmp_path)
    small_dataset(tmp_path / "data", 5)
    return tmp_path


@each_row(__file__, "rerouted_models")
@pytest.mark.usefixtures("without_figures")
def test_a_rerouted_model_is_named_and_priced_as_the_one_that_answers(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    day: str,
    served: str,
    dollars: float,
    notice: str,
) -> None:
    set_date(monkeypatch, day)
    numbench = CommandLine(folder, None)
    with serve(lambda _: servers.chat(usage=USAGE, model=served)) as server:
        Path("numbench-catalogue.toml").write_text(CATALOGUE.replace("URL", server.url))
        options = ("--out", "run", "--max-tokens", "1000", "--max-cost", "1", "--no-stream")
        planned = " ".join(numbench(*RUN, *options, "--dry-run").split())
        assert f"{notice}; the provider then answers with new at that model's price" in planned
        assert f"Price: ${dollars / 600e-6:g} and ${dollars / 60e-6:g} per million" in planned
        if served == "new":
            refused = numbench(*RUN, *options, code=2)
            assert "retired on 2026-12-01" in refused and "add --allow-retired" in refused
            assert not Path("run").exists() and not server.received
            options += ("--allow-retired",)
        shown = numbench(*RUN, *options)
    assert f"warning: run: {notice}" in shown
    lines = [json.loads(line) for line in Path("run/responses.jsonl").read_text().splitlines()]
    assert [(each["served_model"], each["cost"]) for each in lines] == [
        (served, pytest.approx(dollars))
    ] * 5
    mismatch = "asked for acme/old, but 5 of 5 answers name another model: new (5)"
    assert (mismatch in shown) == (served == "new")
    numbench("report", "run", "--out", "page")
    numbench("leaderboard", "run", "--out", "site")
    compared = numbench("compare", "run", "run", "--partial", code=1)  # too few questions
    rows = json.loads(Path("page/report.json").read_text())["tables"]["summary"]
    title = "old, answered by new" if served == "new" else "old"
    assert {row["model"] for row in rows} == {title}
    assert nb.load_scores("run")["model"].unique().tolist() == [title]
    pages = [*Path("site/models").glob("*.html"), Path("site/index.html"), Path("page/report.html")]
    for text in (*(page.read_text() for page in pages), compared):
        assert (mismatch in " ".join(text.split())) == (served == "new")


def test_a_run_that_is_rerouted_on_the_way_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_date(monkeypatch, "2026-11-30")
    names = iter(["old", "old", "new", "new", "new"])
    options: dict[str, Any] = {"dataset": "data", "tasks": ("addition",), "stream": False}
    with serve(lambda _: servers.chat(usage=USAGE, model=next(names))) as server:
        Path("numbench-catalogue.toml").write_text(CATALOGUE.replace("URL", server.url))
        report = nb.run("acme/old", **options, out="run", concurrency=1)
    assert report.warnings[1].startswith("asked for acme/old, but 3 of 5 answers name another")
    assert nb.load_scores("run")["model"].unique().tolist() == ["old, partly answered by new"]
    costs = sorted(nb.load_scores("run")["cost"])
    assert costs == [pytest.approx(600e-6)] * 2 + [pytest.approx(1200e-6)] * 3


def test_the_papers_suite_says_who_can_still_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"dataset": "data", "out": "suite"}
    texts = {}
    for day in ("2026-10-01", "2026-11-27", "2026-12-12"):
        set_date(monkeypatch, day)
        console = Console(width=300, file=StringIO(), record=True)
        console.print(plan_table(plan_suite(list(paper_suite({}, small)))))
        texts[day] = console.export_text()
    assert "retires" not in texts["2026-10-01"]
    for model in ("gpt-5", "gemini-2.5-pro", "gemini-2.5-flash"):
        assert texts["2026-11-27"].count(f"Note: {model} retires on") == 1
        assert f"Note: {model} retired on" in texts["2026-12-12"]
    assert "elsewhere: litellm/azure/" in texts["2026-12-12"]
    assert "(to use the retired model: --allow-retired)" in texts["2026-12-12"]
    assert len(published_configurations()) == 13


def test_another_server_has_no_date_of_retirement(monkeypatch: pytest.MonkeyPatch) -> None:
    set_date(monkeypatch, "2027-06-01")
    assert describe_hosted("openai/gpt-5", "low").known.is_retired
    elsewhere = describe_hosted("openai/gpt-5", "low", "http://127.0.0.1:8000/v1")
    assert not elsewhere.known.is_retired and elsewhere.notices == []


@each_row(__file__, "rejected_parameters")
def test_a_rejected_parameter_ends_the_run_with_a_way_out(
    folder: Path, message: str, way_out: str | None
) -> None:
    with serve(lambda _: servers.error(400, message)) as server:
        Path("numbench-catalogue.toml").write_text(CATALOGUE.replace("URL", server.url))
        shown = CommandLine(folder, None)(*RUN, "--allow-retired", "--out", "run", code=1)
    assert message in shown
    assert (way_out or "") in shown and shown.count("; ") == (2 if way_out else 1)
