"""`numbench export` without the optional libraries: output and error messages."""

import sys
from pathlib import Path

import pytest

from numbench.cli import main
from tests.report import runs

LIBRARIES = ("inspect_ai", "lm_eval", "datasets")


@pytest.fixture(autouse=True)
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the optional libraries impossible to import."""
    for name in list(sys.modules):
        if name.partition(".")[0] in LIBRARIES:
            monkeypatch.delitem(sys.modules, name)
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)


def export(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    """Run `numbench export` in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["numbench", "export", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_inspect_export_without_inspect_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = runs.mixed_run(tmp_path), tmp_path / "out"
    assert export(monkeypatch, str(run), "--to", "inspect", "--out", str(out)) == 2
    error = capsys.readouterr().err
    assert error == "numbench: this needs inspect_ai: pip install 'numbench[inspect]'\n"
    assert not out.exists()


def test_datasets_are_exported_without_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for target, file in (("lm-eval", "numbench_v1.yaml"), ("huggingface", "README.md")):
        out = tmp_path / target
        assert export(monkeypatch, "v1", "--to", target, "--out", str(out)) == 0
        assert (out / file).is_file()
        assert str(out) in capsys.readouterr().out


def test_wrong_use_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        ("--to inspect", "name a run folder"),
        ("v1 v2 --to lm-eval", "takes one dataset, not 2"),
        ("v7 --to huggingface", "no dataset 'v7'"),
        ("v1", "--to"),
    ):
        assert export(monkeypatch, *arguments.split(), "--out", str(tmp_path / "out")) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert message in error
