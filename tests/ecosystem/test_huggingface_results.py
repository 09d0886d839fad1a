"""Evaluation results for the hub, read by its own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numbench
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import Dataset
from numbench.ecosystem.exported_items import yaml_string
from numbench.ecosystem.huggingface import Benchmark, export_eval_results
from numbench.errors import BadInput
from numbench.records import Response
from numbench.scoring import score_run, signature
from tests.report import runs

yaml = pytest.importorskip("yaml", reason="pip install pyyaml")

REVISION = "0123456789abcdef0123456789abcdef01234567"
BENCHMARK = Benchmark("lab/numbench-v1", REVISION, "https://example.org/report")


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    """Four items of each of two tasks."""
    return runs.dataset(tmp_path, tasks=("addition", "minmax"))


def responses(**changed: Response) -> dict[str, Response]:
    """Correct responses to both tasks, except for `addition_0=…` and so on."""
    correct = {
        f"{task}-{index}": runs.right(task, index)
        for task in ("addition", "minmax")
        for index in range(4)
    }
    return correct | {key.replace("_", "-"): value for key, value in changed.items()}


def run(folder: Path, data: Dataset, answers: dict[str, Response], **settings: Any) -> Path:
    return runs.run(folder, data, answers, tasks=("addition", "minmax"), **settings)


def test_the_hubs_parser_reads_value_date_revision_source_and_notes(
    data: Dataset, tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub")
    wrong = runs.said("minmax", 1, '{"answer": 9}')
    folder = run(tmp_path / "run", data, responses(minmax_1=wrong), reasoning="high")
    (file,) = export_eval_results([folder], BENCHMARK, tmp_path / "out")
    assert file.parent == tmp_path / "out" / ".eval_results"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    entries = {entry.task_id: entry for entry in hub.parse_eval_result_entries(content)}
    assert {task: entry.value for task, entry in entries.items()} == {
        "addition": 100.0,
        "minmax": 75.0,
    }
    scored = score_run(folder)
    for task, entry in entries.items():
        assert (entry.dataset_id, entry.dataset_revision) == ("lab/numbench-v1", REVISION)
        assert (entry.source_url, entry.source_name) == ("https://example.org/report", "numbench")
        assert entry.date == "2025-01-01T00:00:00Z"
        assert entry.notes.startswith("reasoning: high; ")
        assert "; protocol: exact; " in entry.notes
        assert entry.notes.endswith(f"signature: {signature(scored, task)}")
    # Wilson's interval of 3 of 4.
    assert "exact match in percent; 95% interval: 30.06 to 95.44; " in entries["minmax"].notes
    assert "log-sMAPE in percent; " in entries["addition"].notes
    # Nothing that the parser does not know, which it would drop.
    assert hub.eval_result_entries_to_yaml(list(entries.values())) == content


def test_incomplete_runs_are_not_published(data: Dataset, tmp_path: Path) -> None:
    one_task = {f"minmax-{i}": runs.right("minmax", i) for i in range(4)}
    failed = responses(addition_3=runs.failed("addition", 3))
    cases = (("'addition' has 3 of 4 answers", failed, None),
             ("'addition' has 0 of 4", one_task, None),
             ("has 2 of 4 answers", responses(), 2))  # fmt: skip
    for number, (message, answers, limit) in enumerate(cases):
        folder = run(tmp_path / str(number), data, answers, limit=limit)
        with pytest.raises(BadInput, match=message):
            export_eval_results([folder], BENCHMARK, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_transformed_items_are_not_published(tmp_path: Path) -> None:
    settings = DatasetSettings(name="tiny", tasks=("addition",), size=4)
    data = generate(settings, tmp_path / "data").dataset
    numbench.run("baseline/float64", dataset=data.path, transform="swap", out=tmp_path / "run")
    with pytest.raises(BadInput, match=r"the questions are transformed \(swap\)"):
        export_eval_results([tmp_path / "run"], BENCHMARK, tmp_path / "out")


def test_runs_of_several_models_or_equal_settings_are_rejected(
    data: Dataset, tmp_path: Path
) -> None:
    folders = [run(tmp_path / name, data, responses()) for name in "ab"]
    with pytest.raises(BadInput, match="another run has the same settings"):
        export_eval_results(folders, BENCHMARK, tmp_path / "out")
    other = run(tmp_path / "c", data, responses(), model="gpt-6")
    with pytest.raises(BadInput, match=r"several models \(gpt-5, gpt-6\)"):
        export_eval_results([folders[0], other], BENCHMARK, tmp_path / "out")


def test_a_name_without_an_owner_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="use OWNER/NAME"):
        export_eval_results([tmp_path], Benchmark("numbench"), tmp_path / "out")


@given(st.text())
def test_a_yaml_parser_reads_every_text(text: str) -> None:
    read = yaml.safe_load(f"- notes: {yaml_string(text)}\n")[0]["notes"]
    assert read == "".join(c if c.isprintable() else "?" for c in text)
