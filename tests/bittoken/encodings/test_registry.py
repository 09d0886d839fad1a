"""Encodings of installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bittoken import encodings
from bittoken.encodings.xval import XVal
from numbench.errors import BadInput


class Named(XVal):
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("name", ["fone", "digit"])
def test_names_of_existing_encodings_are_rejected(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "load_plugins", lambda *_: [("entry", Named(name))])
    with pytest.raises(BadInput, match=f"plugin encoding '{name}' .*exists already; rename it"):
        list(encodings._EncodingRegistry())


def test_plugins_follow_the_built_in_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Named("mine")
    monkeypatch.setattr(encodings, "load_plugins", lambda *_: [("entry", plugin)])
    registry = encodings._EncodingRegistry()
    assert list(registry) == [*encodings.ENCODINGS, "mine"] and registry["mine"] is plugin


def test_a_plugin_can_be_imported_before_the_package(tmp_path: Path) -> None:
    """Importing the package from a plugin does not load the plugin again, half-imported."""
    (tmp_path / "early.py").write_text(
        "from bittoken.encodings.xval import XVal\n"
        "class Early(XVal):\n    name = 'early'\nEARLY = Early()\n"
    )
    info = tmp_path / "early-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: early\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numbench.encodings]\nearly = early:EARLY\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import early; "
        "from bittoken.vocabulary import ENCODING_NAMES; print('early' in ENCODING_NAMES)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
