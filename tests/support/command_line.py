"""The command `numbench`, with or without plugin packages."""

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from numbench.cli import main
from tests.support.runs import KEY, ROOT
from tests.support.servers import Server


def finish(*command: str | Path, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its exit code must be `code`."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def imported_by(code: str, *packages: str) -> set[str]:
    """Return which of the packages some code imports, in a process of its own."""
    check = f"{code}\nimport sys; print(*(set({packages}) & set(sys.modules)))"
    return set(finish(sys.executable, "-c", check).stdout.split())


def install(source: Path, target: Path) -> Path:
    """Install a package of a folder, without its dependencies, and return `target`."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(command, check=True, timeout=600)
    return target


class CommandLine:
    """The command `numbench`, or `bittoken`, in a folder.

    It runs in this process, or in one of its own with the packages that are installed in a folder.
    """

    def __init__(self, folder: Path, packages: Path | None, program: str = "numbench") -> None:
        self.folder, self._packages, self._program = folder, packages, program

    def __call__(
        self, *arguments: str, code: int = 0, environment: Mapping[str, str] | None = None
    ) -> str:
        """Standard output and standard error of a command; its exit code must be `code`."""
        own = {"COLUMNS": "80"} | dict(environment or {})
        if self._packages is None:
            actual, output = self._call(arguments, own)
            assert actual == code, output
            return output
        paths = [str(self._packages), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        own["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = (sys.executable, "-c", f"from {self._program}.cli import main; main()")
        done = finish(*command, *arguments, code=code, cwd=self.folder, env=os.environ | own)
        return done.stdout + done.stderr

    def _call(self, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", [self._program, *arguments])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            for name, value in environment.items():
                patch.setenv(name, value)
            import_module(f"{self._program}.cli").main()
        return int(end.value.code or 0), out.getvalue() + err.getvalue()


NUMBENCH = (sys.executable, "-m", "numbench")


KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


class Ended(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """A function that runs the command in this process, in a folder of its own, without keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["numbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def numbench(
    *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, without keys."""
    kept = {name: value for name, value in os.environ.items() if name not in KEYS}
    return subprocess.run(
        [*NUMBENCH, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=kept | environment,
        timeout=120,
    )


CONCURRENCY = 4


COMMAND_LINE = "from numbench.cli import main; main()"


FAST_POLLS = """
from numbench.runner.retrying import DEFAULT_POLICY
object.__setattr__(DEFAULT_POLICY, "poll_interval", 0.05)
"""


def arguments_for(server: Server, command: str, out: Path) -> list[str]:
    """Return the arguments of a command of numbench that asks a server."""
    arguments = shlex.split(f"{command} --base-url {server.url} --out {out}")
    return arguments + ([] if "--batch" in arguments else ["--concurrency", str(CONCURRENCY)])


def start(server: Server, command: str, out: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command of numbench in another process."""
    arguments = arguments_for(server, command, out)
    code = FAST_POLLS + COMMAND_LINE if "--batch" in arguments else COMMAND_LINE
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY},
        **options,
    )
