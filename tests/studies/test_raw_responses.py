"""Import of the paper's raw files: content, names, and errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from numbench.dataset.store import RELEASED_DATASETS, open_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import read_run
from numbench.records import Response, Usage
from numbench.scoring import score_run, summarize
from studies.raw_responses import import_study
from tests.studies.files import write_responses
from tests.support.case_tables import read_lines

# The first three questions of the task; the first answer is 522579999.999991.
CORRECT = ['{"answer": 522579999.999991}', '{"answer": -73.6022421744091}', '{"answer": -2.99972}']


def _imported(folder: Path, messages: list[str] | None = None) -> list[Path]:
    notes: list[str] = [] if messages is None else messages
    return import_study(folder / "csv", folder / "out", notes.append)


def _imported_responses(
    folder: Path, texts: Sequence[str] = CORRECT, cells: Sequence[Mapping[str, str]] = ()
) -> tuple[Path, list[Response]]:
    """Import one file, and return its run folder and responses."""
    write_responses(folder / "csv", texts, cells=cells)
    (run,) = _imported(folder)
    return run, list(read_run(run).responses.values())


def test_a_file_becomes_a_run_on_the_released_questions(tmp_path: Path) -> None:
    folder, responses = _imported_responses(tmp_path)
    assert folder == tmp_path / "out" / "gpt-5_maximal"
    info = read_run(folder).info
    assert (info.model, info.display, info.reasoning) == ("gpt-5", "GPT 5", "maximal")
    assert (info.tasks, info.source, info.limit) == (("addition",), "imported", None)
    assert info.dataset.sha256 == RELEASED_DATASETS["paper"]
    items = open_dataset("paper").by_task["addition"]
    assert [response.item_id for response in responses] == [item.id for item in items[:3]]
    assert [response.text for response in responses] == CORRECT
    assert {response.extra["study_tokens"] for response in responses} == {7}
    # Importing again writes the same bytes; questions without a row are missing.
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert _imported(tmp_path) == [folder]
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert summarize(score_run(folder))["addition"].statuses == {"ok": 3, "missing": 497}


GEMINI = "usage.usage_metadata."
LIMIT = Usage(input=165, reasoning=65535, visible=0, generated=65535, source="reported")


def test_usage_has_the_same_meaning_for_every_provider(tmp_path: Path) -> None:
    at_limit = {f"{GEMINI}prompt_token_count": "165", f"{GEMINI}thoughts_token_count": "65535"}
    # What is not known, or contradicts itself, stays unknown.
    cases = read_lines(__file__, "usage_cells")
    _, responses = _imported_responses(tmp_path, ["x"] * len(cases), [cells for cells, _ in cases])
    assert [response.usage for response in responses] == [Usage(**usage) for _, usage in cases]
    # Reasoning up to the output limit is truncated and not empty.
    with_total = at_limit | {f"{GEMINI}total_token_count": "65700"}
    texts, cells = ["", "Token limit reached"] * 2, [at_limit] * 2 + [with_total] * 2
    folder, responses = _imported_responses(tmp_path / "limit", texts, cells)
    assert [(one.finish_reason, one.usage) for one in responses] == [("length", LIMIT)] * 4
    summary = summarize(score_run(folder))["addition"]
    assert summary.statuses["truncated"] == 4 and summary.tokens == 65535


def _refused(folder: Path) -> str:
    with pytest.raises(BadInput) as error:
        _imported(folder)
    return str(error.value)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    assert "no such folder" in _refused(tmp_path)
    (tmp_path / "csv").mkdir()
    assert "none of the paper's responses here" in _refused(tmp_path)
    path = write_responses(tmp_path / "csv", CORRECT, cells=[{}, {"text_prompt": "What is 7 + 1?"}])
    assert f"{path}, line 3 (row 2): text_prompt is 'What is 7 + 1?', but" in _refused(tmp_path)
    write_responses(tmp_path / "csv", CORRECT, cells=[{"answer": "8"}])
    assert "line 2 (row 1): answer is '8', but '522579999.999991'" in _refused(tmp_path)
    write_responses(tmp_path / "csv", ["1"] * 500)
    with path.open("a") as file:
        file.write("What is 7 + 1?,8,8,7\n")
    assert "line 502: more rows than the 500 questions" in _refused(tmp_path)
    for vendor in ("deepseek__deepseek-chat-v3.1", "deepseek__deepseek-v3.1"):
        write_responses(tmp_path / "csv", CORRECT, vendor=vendor, effort="none")
    assert "are both deepseek-v3.1 (none); import" in _refused(tmp_path)
    assert not (tmp_path / "out").exists()
