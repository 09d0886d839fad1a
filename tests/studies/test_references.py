"""The bundled scores of the paper's responses follow from the raw files."""

import io
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import numbench as nb
from studies import references
from tests.studies.files import write_responses

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / references.FOLDER / "scores.parquet"


def test_every_bundled_score_belongs_to_a_question_of_the_dataset() -> None:
    assert pq.read_schema(BUNDLED).equals(references.SCHEMA)
    scores = pd.read_parquet(BUNDLED)
    keys = ["model", "level", "item_id"]
    assert len(scores) == 106 * 500
    assert not scores[[*keys, "display", "task"]].isna().any(axis=None)
    assert not scores.duplicated(keys).any()
    tasks = {item.id: item.task for item in nb.load_dataset("paper").by_id.values()}
    assert scores["item_id"].map(tasks).equals(scores["task"])
    assert (scores.groupby(["model", "level", "task"]).size() == 500).all()
    assert scores.groupby(["model", "level"]).ngroups == 13


def test_the_bundled_scores_have_the_means_of_the_rescored_study() -> None:
    scores = pd.read_parquet(BUNDLED)
    scores["config"] = scores["display"] + " (" + scores["level"] + ")"
    scores["exact_match"] = scores["exact_match"].astype("float")
    means = scores.groupby(["config", "task"])[["exact_match", "log_smape"]].mean().stack().dropna()
    table = pd.read_csv(ROOT / "results" / "rescored-study" / "scores.csv")
    expected = table.set_index(["config", "task", "metric"])["rescored"].dropna()
    assert len(expected) == len(means) == 173
    assert (100 * means).reindex(expected.index).tolist() == pytest.approx(expected.tolist())


def test_the_command_scores_the_responses_of_any_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_responses(tmp_path / "raw", ['{"answer": 522579999.999991}', "no"]).parent
    assert references.main([str(study), "--out", str(tmp_path)]) == 0
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert scores[["model", "level"]].drop_duplicates().values.tolist() == [["gpt-5", "maximal"]]
    assert scores["exact_match"].tolist() == [True, False, *[None] * 498]
    assert scores["error_kind"].tolist()[2:] == ["missing"] * 498
    assert references.main([str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("none: no such folder\n")


@pytest.mark.slow
def test_the_bundled_scores_follow_from_the_responses(paper_results: Path) -> None:
    rebuilt = pd.read_parquet(io.BytesIO(references.build(paper_results)[BUNDLED.name]))
    pd.testing.assert_frame_equal(rebuilt, pd.read_parquet(BUNDLED), rtol=1e-12)
