"""The command line: quick, plain about mistakes, and free of tracebacks."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bench.cli.options import duration
from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.demo import demo

NUMBENCH = (sys.executable, "-c", "from bench.cli import main; main()")
HEAVY = ("torch", "litellm", "openai", "google.genai", "pandas", "matplotlib", "pyarrow", "numpy")
KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def numbench(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    return subprocess.run(
        [*NUMBENCH, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=120,
    )


@pytest.mark.parametrize("command", [[], ["run"], ["report"], ["generate"], ["audit"], ["show"]])
def test_help_explains_and_loads_nothing_heavy(command: list[str]) -> None:
    code = (
        "import sys; from bench.cli import app\n"
        "try: app(sys.argv[1:] + ['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name in " + repr(HEAVY) + "])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=60
    )
    assert "Usage: " in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


BASELINE = ("--model", "baseline/float64")
LOCAL = ("--model", "openai/x", "--base-url", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize("text, seconds", [("90", 90), ("90s", 90), ("1h30m", 5400), ("0.5", 0.5)])
def test_times_are_given_in_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "--tasks", "addition,logarithm"], "unknown task 'logarithm'"),
        (["generate", "--size", "0"], "at least 1"),
        (["generate", "--size", "many"], "--size"),
        (["generate", "--max-digits", "40"], "between 3 and 17"),
        (["generate", "--split", "dev"], "--split"),
        (["run"], "--model"),
        (["run", "--model", "gtp-5"], "did you mean gpt-5?"),
        (["run", "--model", "gpt-5"], "minimal, low, medium, high, maximal"),
        (["run", "--model", "gpt-5", "--reasoning", "minimal"], "set OPENAI_API_KEY"),
        (["run", "--model", "gpt-5", "--reasoning", "none"], "no reasoning level 'none'"),
        (["run", "--model", "baseline/float64", "--dataset", "v0"], "no dataset 'v0'"),
        (["run", "--model", "baseline/float64", "--tasks", "sum"], "unknown task 'sum'"),
        (["run", "--model", "baseline/float64", "--limit", "0"], "--limit 0"),
        (["run", *BASELINE, "--concurrency", "0"], "--concurrency 0"),
        (["run", *BASELINE, "--few-shot", "99"], "leave out --few-shot"),
        (["run", *LOCAL, "--few-shot", "99"], "--few-shot 99: give 0 to 64"),
        (["run", *LOCAL, "--max-tokens", "0"], "--max-tokens 0"),
        (["run", *LOCAL, "--timeout", "soon"], "'soon' is no time"),
        (["run", *LOCAL, "--time-limit", "0"], "--time-limit 0"),
        (["run", *LOCAL, "--max-cost", "5"], "no price is known"),
        (["run", *LOCAL, "--api", "soap"], "--api"),
        (["run", *LOCAL, "--api", "responses", "--seed", "1"], "leave out --seed"),
        (["run", "--model", "openrouter/a/b", "--base-url", "http://x", "--batch"], "no batch API"),
        (["run", *BASELINE, "--batch"], "leave out --batch"),
        (["run", "--suite", "paper", "--batch"], "leave them out with --suite"),
        (["run", "--suite", "paper", "--model", "gpt-5"], "leave out --model"),
        (["report", "nowhere"], "nowhere"),
        (["report"], "results"),
        (["audit", "nowhere"], "no dataset 'nowhere'"),
        (["describe", "nowhere"], "no dataset 'nowhere'"),
        (["generate", "--workers", "0"], "--workers 0"),
        (["generate", "--format", "csv"], "--format"),
        (["import", "nowhere"], "nowhere"),
        (["show", "nowhere"], "nowhere"),
        (["frobnicate"], "frobnicate"),
        (["run", "--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_use_is_one_clear_line_and_code_2(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = numbench(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("numbench: ") and message in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_key_may_lie_in_an_env_file_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-planted-key-0123456789\n")
    listed = numbench("models", cwd=tmp_path)
    assert "OPENAI_API_KEY (set)" in " ".join(listed.stdout.split())
    assert "OPENROUTER_API_KEY (not set)" in " ".join(listed.stdout.split())
    assert "planted" not in listed.stdout + listed.stderr
    code = "from bench.models import open_model; open_model('gpt-5', 'minimal')"
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    (tmp_path / ".env").unlink()
    refused = numbench("run", "--model", "gpt-5", "--reasoning", "minimal", cwd=tmp_path)
    assert refused.returncode == 2 and ".env" in refused.stderr


def test_a_broken_line_is_named_with_its_number(tmp_path: Path) -> None:
    generate(Settings(name="d", tasks=("addition",), size=3), tmp_path / "d")
    path = tmp_path / "d" / "addition.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    done = numbench("run", "--model", "baseline/float64", "--dataset", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert "d/addition.jsonl, line 2: " in done.stderr and len(done.stderr.splitlines()) == 1


def test_debug_gives_the_traceback(tmp_path: Path) -> None:
    done = numbench("show", "nowhere", "--debug", cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" in done.stderr


def test_the_whole_way_without_a_key(tmp_path: Path) -> None:
    generate(Settings(name="tiny", size=4), tmp_path / "datasets" / "tiny")
    run = numbench("run", "--model", "baseline/float64", "--dataset", "tiny", cwd=tmp_path)
    assert run.returncode == 0 and "36 answered now, 0 before" in run.stdout
    again = numbench("run", "--model", "baseline/float64", "--dataset", "tiny", cwd=tmp_path)
    assert again.returncode == 0 and "0 answered now, 36 before" in again.stdout
    report = numbench("report", cwd=tmp_path)
    assert report.returncode == 0
    assert all(len(line) <= 80 for line in report.stdout.splitlines())
    with (tmp_path / "results/report/tables/log_smape.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["Model"], row["Add"], row["Sort"]) == ("float64 arithmetic", "100.0", "100.0")
    shown = numbench("show", "results/baseline-float64_none_tiny", "--tasks", "mean", cwd=tmp_path)
    assert shown.returncode == 0 and shown.stdout.count("question  What is the mean") == 4
    audit = numbench("audit", "tiny", "--out", "wrong.csv", cwd=tmp_path)
    assert audit.returncode == 0
    assert (tmp_path / "wrong.csv").read_text().count("\n") == 1


def test_an_interrupted_generation_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = ["generate", "--name", "big", "--split", "train", "--size", "3000000"]
    process = subprocess.Popen(
        [*NUMBENCH, *arguments], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    note = tmp_path / "datasets/big/.parts/settings.json"
    while not note.exists() and process.poll() is None:
        time.sleep(0.01)
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        # A signal that comes while a library is being imported may be lost there.
        with suppress(subprocess.TimeoutExpired):
            _, errors = process.communicate(timeout=6)
            break
    assert process.returncode == 130
    assert errors.endswith("interrupted; the same command goes on with what is missing\n")
    assert not list((tmp_path / "datasets/big").glob("*.json*"))


def test_a_dataset_is_described(tmp_path: Path) -> None:
    generate(Settings(name="tiny", tasks=("addition",), size=20), tmp_path / "datasets" / "tiny")
    done = numbench("describe", "tiny", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "datasets/tiny/figures/pairs.png").is_file()


def test_the_demo_asks_the_small_model_too(tmp_path: Path) -> None:
    done = numbench("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "float64 arithmetic" in done.stdout and "published (paper)" in done.stdout
    assert "numbench small" in done.stdout.partition("published (paper)")[0]
    report = tmp_path / "results/demo/report"
    assert (report / "report.html").is_file()
    assert (report / "figures/radar.png").stat().st_size > 10_000


def test_without_torch_the_demo_asks_the_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.demo.find_spec", lambda package: None)
    monkeypatch.setattr("bench.demo.report", lambda folders, out: sorted(folders))
    said: list[str] = []
    assert len(demo(tmp_path, said.append)) == 3  # type: ignore[arg-type]
    assert said[0] == "checkpoint/small is left out: it needs pip install 'numbench[local]'"
    assert {path.name for path in tmp_path.iterdir()} == {
        f"baseline-{precision}" for precision in ("float64", "float32", "bfloat16")
    }


def test_a_reader_that_leaves_early_is_no_disaster(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'from bench.cli import main; main()' audit v1 | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in done.stderr
