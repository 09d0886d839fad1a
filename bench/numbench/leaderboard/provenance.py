"""Where the scores of a run come from: settings, hashes, signatures, and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from numbench.dataset.store import sha256_of
from numbench.journal import INFO, RESPONSES
from numbench.records import RunInfo

_FILES = (INFO, RESPONSES, "requests.jsonl", "rounds.jsonl")
"""The files of a run that its scores depend on, or that show how it was made."""


def settings(info: RunInfo) -> dict[str, str]:
    """Return what shaped the requests of a run, as pairs of name and text."""
    known: dict[str, object] = {
        "Model": info.model,
        "Reasoning level": info.reasoning,
        "Source": info.source,
        "Created": info.created or "not recorded",
        "Dataset": f"{info.dataset.name}, sha256 {info.dataset.sha256}",
        "Prompts": f"{info.prompt.name}, sha256 {info.prompt.sha256}",
        "Form of the items": info.transform or "as in the dataset",
        "Samples per item": info.samples,
    }
    # An address may be of a private network.
    if info.settings.get("base_url"):
        known["Server"] = "chosen with --base-url"
    known |= {
        f"Setting {name}": value for name, value in info.settings.items() if name != "base_url"
    }
    known |= {f"Version of {name}": value for name, value in info.versions.items()}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in known.items()
    }


def file_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run folder that documents its scores."""
    return {name: sha256_of(folder / name) for name in _FILES if (folder / name).is_file()}


def checksums(names: Sequence[str], folders: Sequence[Path]) -> str:
    """Return the hashes of all runs in the format of `sha256sum`, each under its page's name."""
    return "".join(_checksum_lines(names, folders))


def _checksum_lines(names: Sequence[str], folders: Sequence[Path]) -> Iterator[str]:
    for name, folder in zip(names, folders, strict=True):
        for file, digest in file_hashes(folder).items():
            yield f"{digest}  {name}/{file}\n"
