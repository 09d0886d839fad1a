"""The command line: help, errors, exit codes, and commands from end to end."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bittoken.recipe import load_recipe
from numbench.cli import _COMMANDS, app, main
from numbench.cli.run import print_run_report
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.demo import INTEGERS, demo
from numbench.errors import BadInput
from numbench.models.prices import load_model_map
from numbench.runner.progress import RunReport
from tests.support.case_tables import each_row
from tests.support.command_line import KEYS, NUMBENCH, Call, numbench

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "litellm", "openai", "google.genai", "pandas", "matplotlib", "pyarrow", "numpy")
COMMANDS = [name for group in _COMMANDS.values() for name in group]


def help_of(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], terminal_width=80)
    assert result.exit_code == 0
    return result.stdout


def test_help_imports_no_heavy_package() -> None:
    code = (
        "import sys; from numbench.cli import app\n"
        "for command in ([], ['run'], ['horizon'], ['report'], ['generate'], ['show']):\n"
        "    try: app([*command, '--help'], prog_name='numbench')\n"
        "    except SystemExit: pass\n"
        f"print([name for name in sys.modules if name in {HEAVY}])"
    )
    process = [sys.executable, "-c", code]
    done = subprocess.run(process, capture_output=True, text=True, timeout=100)
    assert done.stdout.count("Usage: numbench") == 6
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_examples_and_names_its_output(command: str) -> None:
    text = help_of(command)
    assert "Examples:\n    numbench " in text
    assert all(len(line) <= 80 for line in text.splitlines())
    if command not in ("audit", "models", "show"):
        assert re.search(r"Writes (to --out|one run folder|no files)", text)


def test_the_overview_lists_the_commands_in_groups() -> None:
    text = help_of()
    lines = text[text.index("\nMeasure:") :].splitlines()
    assert [line[:-1] for line in lines if line.endswith(":")] == list(_COMMANDS)
    named = [line.split()[0] for line in lines if re.match(r"  \w", line)]
    assert named == COMMANDS
    assert not [line for line in lines if line.endswith("...")]


@each_row(__file__, "completions")
def test_the_shell_completes_commands_options_and_values(
    call: Call, monkeypatch: pytest.MonkeyPatch, words: str, expected: tuple[str, ...]
) -> None:
    monkeypatch.setenv("_NUMBENCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert sorted(set(call()[1].split())) == list(expected)


BASELINE = ("--model", "baseline/float64")
LOCAL = ("--model", "openai/x", "--base-url", "http://127.0.0.1:1/v1")


@each_row(__file__, "wrong_commands")
def test_wrong_use_is_one_line_and_exit_code_2(
    tmp_path: Path, call: Call, command: str, message: str
) -> None:
    for name, options in {"BASELINE": BASELINE, "LOCAL": LOCAL}.items():
        command = command.replace(name, " ".join(options))
    code, output, errors = call(*shlex.split(command))
    assert (code, output, len(errors.splitlines())) == (2, "", 1)
    assert errors.startswith("numbench: ") and message in errors
    assert not any(tmp_path.iterdir())


def test_an_api_key_is_read_from_an_env_file_and_never_shown(tmp_path: Path, call: Call) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-planted-key-0123456789\r\n", "utf-8-sig")
    listed = numbench("models", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert "OPENAI_API_KEY (set)" in " ".join(listed.stdout.split())
    assert "OPENROUTER_API_KEY (not set)" in " ".join(listed.stdout.split())
    assert "planted" not in listed.stdout + listed.stderr
    program = "from numbench.models import open_model; open_model('gpt-5', 'minimal')"
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    (tmp_path / ".env").unlink()
    code, _, refused = call("run", "--model", "gpt-5", "--reasoning", "minimal")
    assert code == 2 and ".env" in refused


def test_quiet_leaves_the_result_and_the_error(call: Call) -> None:
    run = ("run", *BASELINE, "--tasks", "minmax", "--limit", "2")
    (_, loud, shown), (_, quiet, rest) = call(*run), call(*run, "--quiet")
    assert shown and not rest
    assert quiet.replace("0 answered now, 2 done", "2 answered now, 0 done") == loud
    failed = call("--quiet", "report", "nowhere")
    assert failed == (2, "", "numbench: nowhere does not exist; give a run folder\n")


@pytest.mark.usefixtures("without_figures")
def test_verbose_shows_all_warnings(tmp_path: Path, call: Call) -> None:
    call("run", *BASELINE, "--tasks", "minmax", "--limit", "2")
    (run,) = (tmp_path / "results").iterdir()
    for count in range(6):
        shutil.copytree(run, tmp_path / f"results/{count}")
    short, full = (
        " ".join(call("report", "--out", "r", *more)[1].split()) for more in ((), ("--verbose",))
    )
    warning = "includes only the first 2 questions per task (--limit)."
    assert 0 < short.count(warning) < full.count(warning) == 7
    assert "more All warnings: --verbose" in short and "--verbose" not in full


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["numbench", "show", "nowhere", "--debug"])
    with pytest.raises(BadInput, match="nowhere does not exist"):
        main()


def test_an_interrupted_generation_leaves_nothing(tmp_path: Path) -> None:
    arguments = ["generate", "--name", "big", "--split", "train", "--size", "3000000"]
    process = subprocess.Popen(
        [*NUMBENCH, *arguments], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    # Before rows are written, a signal may be lost while a library is being imported.
    rows = "datasets/.big.partial-*/dataset/*.jsonl"
    while process.poll() is None and not any(f.stat().st_size for f in tmp_path.glob(rows)):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.endswith("interrupted; no dataset written\n")
    assert not list((tmp_path / "datasets").iterdir())


@each_row(__file__, "next_commands")
def test_a_generated_dataset_names_a_next_command_that_works(
    call: Call, arguments: str, dataset: str
) -> None:
    generate_d = shlex.split(f"generate --name d --size 3 {arguments}")
    code, output, errors = call(*generate_d)
    assert code == 0, errors
    assert "questions, written" in output and "exists already" in call(*generate_d)[1]
    command = output.splitlines()[-1].removeprefix("next: ")
    assert command == f"numbench run --model baseline/float64 --dataset {dataset}"
    assert call(*shlex.split(command)[1:])[0] == 0


def test_without_torch_the_demo_runs_only_the_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numbench.demo.find_spec", lambda package: None)
    monkeypatch.setattr("numbench.demo.report", lambda folders, **options: sorted(folders))
    generate(DatasetSettings(name="tiny", size=2, tasks=("minmax",)), tmp_path / "tiny")
    messages: list[str] = []
    out = tmp_path / "out"
    (folders,) = demo(out, messages.append, tmp_path / "tiny")
    assert messages[-1] == "checkpoint/small is skipped: it needs pip install 'numbench[local]'"
    assert set(out.iterdir()) == set(folders)  # type: ignore[arg-type]
    assert {path.name for path in out.iterdir()} == {
        f"baseline-{precision}_tiny" for precision in ("float64", "float32", "bfloat16")
    }


def test_demo_asks_the_small_model_what_it_was_trained_on() -> None:
    recipe = load_recipe("small")
    assert (recipe.data.tasks, recipe.data.bits) == (INTEGERS.tasks, INTEGERS.max_bits)


@each_row(__file__, "next_steps")
def test_the_next_step_of_an_export_is_that_of_the_docs(
    tmp_path: Path, call: Call, target: str, hint: str
) -> None:
    generate(DatasetSettings(name="tiny", size=2, tasks=("minmax",)), tmp_path / "tiny")
    _, output, _ = call("export", "tiny", "--to", target, "--out", "out")
    (step,) = [line for line in output.splitlines() if line.startswith("next: ")]
    documented = (ROOT / "docs/integrations.md").read_text()
    for word in hint.split():
        assert word in step.split()
        assert word.partition("/")[0] in documented


def test_the_search_for_models_shows_levels_prices_and_the_count_of_the_rest(call: Call) -> None:
    code, output, errors = call("models", "GPT-6")
    assert code == 0, errors
    rows = {line.split()[-1]: line.split()[:3] for line in output.splitlines() if " gpt" in line}
    assert rows["gpt-6-luna"] == ["0.1", "0.5", "openai"]
    assert re.search(r"^[0-9]+ more: narrow the pattern.$", output, re.M)
    assert "model map of litellm " in output
    output = call("models", "deepseek/*flash")[1]
    assert "more: " not in output and "deepseek/deepseek-flash" in output
    # Long routes stay on one line, so that they can be copied.
    words = set(call("models", "litellm/bedrock/*")[1].split())
    routes = {f"litellm/{name}" for name in load_model_map().models if "bedrock/" in name}
    shown = routes & words
    assert len(shown) == 40 and max(map(len, shown)) > 60


@pytest.mark.parametrize("command", ["models", "prompts --json"])
def test_a_reader_that_stops_early_causes_no_traceback(command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    process = [*NUMBENCH, *command.split()]
    done = subprocess.run(process, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


@each_row(__file__, "shell_commands")
def test_streams_may_be_closed_or_full(tmp_path: Path, shell: str, code: int, error: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m numbench {shell}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert error in done.stderr


@pytest.mark.parametrize("source", ["--model mine --reasoning low", "--suite suite.toml"])
def test_files_may_begin_with_a_mark(tmp_path: Path, call: Call, source: str) -> None:
    catalogue = '[[model]]\nname = "mine"\ndisplay = "M"\nroute = "openai/m"\n'
    (tmp_path / "numbench-catalogue.toml").write_text(catalogue, encoding="utf-8-sig")
    suite = '[[matrix]]\nmodel = "mine"\nreasoning = "low"\n'
    (tmp_path / "suite.toml").write_text(suite, encoding="utf-8-sig")
    done = call("run", *source.split(), "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    assert done.code == 0, done.err


def test_the_plan_of_several_runs_names_variants_and_counts_unknown_costs(call: Call) -> None:
    several = ("--model", "openai/x", "--prompts", "paper,steps", "--limit", "1", "--dry-run")
    printed = call("run", *several, "--tasks", "addition").out
    rows = [line.split()[2] for line in printed.splitlines() if line.startswith("openai/x")]
    assert rows == ["-", "steps"]
    assert "Total: 2 requests, plus 2 runs of unknown cost." in printed


def test_the_day_is_in_names_of_folders_but_not_in_requests(tmp_path: Path, call: Call) -> None:
    url = ("--base-url", "http://127.0.0.1:9/v1", "--limit", "1", "--dry-run")
    printed = call("run", "--model=openai/m", "--out=a-{date}", "--param", 'user="b-{date}"', *url)
    assert re.search(r"^a-20\d\d-\d\d-\d\d$", printed.out, re.MULTILINE), printed
    assert '"user": "b-{date}"' in printed.out


def test_questions_that_an_earlier_call_left_without_an_answer_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_run_report(RunReport(skipped=2, unanswered=2))
    assert "2 questions have no answer, because of permanent failures" in capsys.readouterr().err
