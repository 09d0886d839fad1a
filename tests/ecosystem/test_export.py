"""`numbench export` without the optional libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import numbench as nb
from tests.report import runs

LIBRARIES = ("inspect_ai", "lm_eval", "datasets")


def test_only_logs_of_inspect_need_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        *(each for each in sys.modules if each.partition(".")[0] in LIBRARIES),
        *LIBRARIES,
    ):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(nb.BadInput, match=r"needs inspect_ai: pip install 'numbench\[inspect\]'"):
        nb.export(runs.mixed_run(tmp_path), to="inspect", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for to, file in (("lm-eval", "numbench_v1.yaml"), ("huggingface", "README.md")):
        exported = nb.export("v1", to=to, out=tmp_path / to)  # type: ignore[arg-type]
        assert (
            tmp_path / to / file in exported.files and str(tmp_path / to) in exported.next_command
        )
