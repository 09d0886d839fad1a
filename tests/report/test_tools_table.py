"""The table of runs with a calculator, on conversations whose columns are known."""

import re
from pathlib import Path
from typing import Any

import pytest

from numbench.ecosystem.inspect_log import export_runs
from numbench.item_view import item_texts, select_items
from numbench.reporting.build import build_tables
from numbench.reporting.figures import render
from numbench.reporting.names import is_higher
from numbench.reporting.read import read_report_data
from numbench.scoring import score_run, signature
from tests.report.page_content import page_of, responses
from tests.support.case_tables import each_row
from tests.support.runs import go, small_dataset
from tests.support.servers import ReceivedRequest, Reply, Script, serve
from tests.support.tools import answering, calling, expression, results_of


def scripted(play: dict[int, tuple[str, str]]) -> Script:
    """Return the script of a model that follows `play` for the question n + 1.

    Its values are expressions, empty for no call, and an answer, in which {} is the first result.
    """

    async def script(received: ReceivedRequest) -> Reply:
        number = re.search(r"What is (\d+) \+ 1\?", received.prompt)
        assert number
        called, answer = play.get(int(number[1]), ("", "0"))
        results = results_of(received)
        if called and not results and "tools" in received.body:
            return await calling(received, *map(expression, called.split(";")))
        return await answering(received, f'{{"answer": {answer.format(*results)}}}')

    return script


HONEST = {1: ("", "2"), 2: ("2+1;1+2", "{}"), 3: ("3+2", "{}"), 4: ("4+1", "6"), 5: ("5+", "7")}
FAULTY = {1: ("1+1", "{}"), 2: ("2+1", "3"), 3: ("3+1", "9"), 4: ("", "5"), 5: ("", "0")}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    dataset = small_dataset(tmp_path / "data", 5)
    plays: tuple[tuple[dict[int, tuple[str, str]], dict[str, Any]], ...] = (
        ({}, {}),
        (HONEST, {"tools": "calculator"}),
        (FAULTY, {"tools": "calculator:faulty=1"}),
    )
    out = [tmp_path / "runs" / name for name in ("plain", "honest", "faulty")]
    for folder, (play, options) in zip(out, plays, strict=True):
        with serve(scripted(play)) as server:
            go(server, dataset, folder, tasks=["addition"], **options)
    return out


def test_the_table_says_what_became_of_calls_and_results(folders: list[Path]) -> None:
    data = read_report_data(folders, "exact", False, lambda message: None)
    table = build_tables(data)["tools"]
    rows = {data.runs[row.run].note: row.cells for row in table.rows if row.run is not None}
    honest, faulty = (rows[note] for note in ("calculator", "calculator:faulty=1"))

    def values(cells: Any, *names: str) -> list[float | None]:
        return [None if cells.get(name) is None else round(cells[name].value, 1) for name in names]

    names = ("called", "calls", "failed", "in_text")
    names += ("wrong_expression", "copied_wrong", "correct_alone")
    assert values(honest, *names) == [80.0, 1.0, 20.0, 0.0, 33.3, 50.0, 100.0]
    assert values(honest, "believed", "noticed", "corrected", "reasoning") == [None] * 4
    assert values(faulty, "called", "believed", "noticed", "corrected") == [60.0, 33.3, 66.7, 33.3]
    assert values(faulty, "wrong_expression", "correct_alone") == [0.0, 50.0]
    exact = {run.note: data.estimate(run, "score") for run in data.runs}
    gain = exact["calculator"].value - exact[""].value
    assert values(honest, "gain") == [round(gain, 1)] and honest["gain"].low < gain
    titles = [column.title for column in table.columns]
    assert {"Believed", "Noticed", "Corrected", "Gain"} <= set(titles)


def test_tools_are_in_signatures_figures_and_what_is_shown(folders: list[Path]) -> None:
    scored = score_run(folders[1])
    assert "|tools:calculator|" in signature(scored, "addition")
    data = read_report_data(folders, "exact", False, lambda message: None)
    figures, _ = render(data, (), lambda message: None, ("pareto_tokens",))
    assert "square: with a tool" in figures[0].files["svg"].decode()
    shown = "\n".join(text.plain for text in item_texts(select_items(folders[1])))
    assert 'call      {"expression": "3+2"} → 5' in shown
    turns = [row["turns"] for row in responses(page_of(data))]
    assert '{"expression": "3+2"} → 5' in turns and None in turns


@pytest.mark.slow
def test_inspect_keeps_the_turns(folders: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")
    from inspect_ai.log import read_eval_log

    (path,) = export_runs([folders[2]], tmp_path / "logs")
    samples = read_eval_log(str(path)).samples or []
    roles = {tuple(message.role for message in sample.messages[-4:]) for sample in samples}
    assert ("user", "assistant", "tool", "assistant") in roles


@each_row(__file__, "levels")
def test_levels_are_higher_or_lower_than_others(level: str, other: str, sign: int) -> None:
    assert is_higher(level, other) - is_higher(other, level) == sign
