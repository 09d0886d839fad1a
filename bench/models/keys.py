"""Where keys come from: the environment, then a `.env` file in the working directory."""

from __future__ import annotations

from pathlib import Path

from bench.errors import BadInput


def read_env_file() -> None:
    """Take what `.env` sets and the environment does not into this process's environment.

    BadInput for a file that cannot be read.
    """
    path = Path(".env")
    if not path.is_file():
        return
    from dotenv import load_dotenv

    try:
        load_dotenv(path, override=False)
    except OSError as error:
        raise BadInput(f"{path.absolute()}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path.absolute()} is not UTF-8 text: save it as UTF-8") from None
    except ValueError:
        raise BadInput(f"{path.absolute()} sets a variable to what none can hold") from None


def check_key(variable: str, key: str) -> None:
    """BadInput, naming the variable alone, for a key with a character that no header can carry."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadInput(
            f"{variable} holds a character that no key has, such as a space, a line break or a "
            "typographic quote: set it again"
        )
