"""The committed notebook runs, and its outputs are those of this version."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[1] / "docs" / "quickstart.ipynb"


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """The text of each code cell, which may arrive in pieces; figures and HTML are left out."""
    return [
        "".join(
            output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
            for output in cell["outputs"]
            if output.get("name") != "stderr" and "image/png" not in output.get("data", {})
        )
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    ]


def test_the_notebook_gives_its_committed_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    committed = nbformat.read(NOTEBOOK, as_version=4)
    executed = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        executed, timeout=600, startup_timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert outputs(executed) == outputs(committed)
    assert sum(map(bool, outputs(committed))) >= 8
