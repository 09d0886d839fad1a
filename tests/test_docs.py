"""The documentation refers to files, commands and anchors that exist."""

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import numbench
from numbench.cli import SWITCHES, app
from numbench.published import published_means
from numbench.reporting import figures

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("docs/*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        ROOT / "datasets" / "README.md",
    ]
)
EXAMPLE_PAGES = ("README.md", "docs/quickstart.md")
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

REPOSITORY_PATH = re.compile(
    r"`((?:bench|benchmarks|checkpoints|docs|prompts|recipes|studies|tests)/[\w./-]+)`"
)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as MkDocs derives them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    slugs = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", slug) for slug in slugs}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_a_page_refers_to_exists(page: Path) -> None:
    """Links lead to files and headings, paths and commands exist, Python code is valid."""
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match("[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    for path in REPOSITORY_PATH.findall(text):
        assert (ROOT / path).exists(), path
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        compile(code, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for command, arguments in re.findall(
        r"(?:^    |\$ |`)numbench ([a-z]+(?:-[a-z]+)*)\b([^`#\n]*)", text, re.M
    ):
        assert command in commands, command
        options = {name for p in commands[command].params for name in (*p.opts, *p.secondary_opts)}
        for option in re.findall(r"(?<!\S)--[a-z-]+", arguments):
            assert option in options | {*SWITCHES, "--help"}, f"{command} {option}"


class Example(NamedTuple):
    """A command in a page, and the output below it."""

    command: str
    output: str


def examples(page: str) -> list[Example]:
    """Return the commands of `console` blocks that show an output."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    commands = (part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:])
    pairs = (Example(*part.split("\n", 1)) for part in commands)
    return [example for example in pairs if example.output.strip()]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run each command once, in the order of the pages, without figures; return its output."""
    result: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("examples"))
        patch.setenv("COLUMNS", "80")
        patch.setattr(figures, "FIGURES", ())
        for command in dict.fromkeys(e.command for page in EXAMPLE_PAGES for e in examples(page)):
            program, *arguments = shlex.split(command)
            assert program == "numbench"
            run = CliRunner().invoke(app, arguments)
            assert run.exit_code == 0, run.output
            result[command] = run.stdout
    return result


@pytest.mark.parametrize("page", EXAMPLE_PAGES)
def test_shown_outputs_are_those_of_the_program(page: str, outputs: dict[str, str]) -> None:
    shown = examples(page)
    assert {"run", "report"} <= {example.command.split()[1] for example in shown}
    for command, output in shown:
        # "…" stands for any lines.
        parts = re.split(r"^…\n", output, flags=re.M)
        pattern = "(?:.*\n)*?".join(re.escape(part) for part in parts)
        printed = re.sub(" +$", "", outputs[command], flags=re.M)
        assert re.fullmatch(pattern, printed), f"{command} prints:\n{printed}"


def test_the_costs_of_a_full_run_are_those_of_its_plan() -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| ([\d.]+) million \| \$([\d.]+) \|$", page, re.M)
    assert len(rows) >= 5
    for model, reasoning, tokens, cost in rows:
        planned = numbench.plan(model=model, reasoning=reasoning)
        assert planned.total.generated_tokens is not None and planned.cost is not None
        assert f"{planned.total.generated_tokens / 1e6:.1f}" == tokens
        assert f"{planned.cost:.{len(cost.partition('.')[2])}f}" == cost


@pytest.mark.slow
def test_the_site_has_a_report_and_a_leaderboard_of_the_published_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_build")
    import_module("example").write_example(tmp_path)
    published = {model for model, _ in published_means()}
    for name in ("example/report.html", "leaderboard/index.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert all(model in page for model in published), name
        assert str(tmp_path) not in page
        assert f'href="{name}"' in import_module("example").LINKS


def test_the_ranges_of_the_gate_are_those_of_its_simulation() -> None:
    rows = re.findall(r"^\| .*%.*\|$", (ROOT / "benchmarks/gate.md").read_text("utf-8"), re.M)
    shares = [re.findall(r"([0-9.]+)%", row)[1:] for row in rows]
    columns = [sorted(map(float, column)) for column in zip(*shares, strict=True)]
    ranges = [f"{column[0]} to {column[-1]}%" for column in columns]
    page = (ROOT / "docs/statistics.md").read_text("utf-8")
    table = page[page.index("| equal runs that fail (*All*)") :].partition("\n\n")[0]
    shown = re.findall(r"[0-9.]+ to [0-9.]+%", table)
    assert sorted(shown) == sorted(ranges) and len(shown) == 6
