"""Where keys come from: the environment, then a `.env` file in the working directory."""

from __future__ import annotations

from pathlib import Path


def read_env_file() -> None:
    """Take what `.env` sets and the environment does not into this process's environment."""
    path = Path(".env")
    if path.is_file():
        from dotenv import load_dotenv

        load_dotenv(path, override=False)
