"""`python -m numbench` in a process of its own, with or without plugin packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def install(source: Path, target: Path) -> Path:
    """Install a package of a folder, without its dependencies, and return `target`."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(command, check=True, timeout=600)
    return target


class CommandLine:
    """`python -m numbench` in a folder, with the packages installed in another one or without."""

    def __init__(self, folder: Path, packages: Path | None) -> None:
        self.folder = folder
        self._packages = packages

    def __call__(
        self, *arguments: str, code: int = 0, environment: Mapping[str, str] | None = None
    ) -> str:
        """Standard output and standard error of a command; its exit code must be `code`."""
        paths = [str(self._packages)] if self._packages else []
        paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        own = {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80"}
        done = subprocess.run(
            [sys.executable, "-m", "numbench", *arguments],
            cwd=self.folder,
            env=os.environ | own | (environment or {}),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr
