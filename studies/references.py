"""Score the paper's raw responses item by item: python -m studies.references FOLDER.

Writes `datasets/paper/scores.parquet`, which has no texts of responses.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import numbench as nb
from numbench.journal.run_folder import read_info
from numbench.scoring.error_kinds import UNANSWERED_STATUSES
from studies.pages import write_study_pages
from studies.raw_responses import import_study

FOLDER = Path("datasets/paper")
MAX_PARSED_LENGTH = 40

SCHEMA = pa.schema(
    {
        **dict.fromkeys(("model", "display", "level", "task", "item_id"), pa.string()),
        "exact_match": pa.bool_(),
        "log_smape": pa.float64(),
        "error_kind": pa.string(),
        "generated_tokens": pa.int32(),
        "reasoning_tokens": pa.int32(),
        "cost": pa.float64(),
        "parsed": pa.string(),
    }
)


def build(responses: Path) -> dict[str, bytes]:
    """Return the content of the file by its name."""
    with tempfile.TemporaryDirectory() as folder:
        scores = pd.concat(map(_scores, import_study(responses, Path(folder))))
    table = pa.Table.from_pandas(scores, SCHEMA, preserve_index=False).replace_schema_metadata()
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=19)
    return {"scores.parquet": buffer.getvalue()}


def _scores(run: Path) -> pd.DataFrame:
    """Return the scores of a run. Those of a failed request are unknown, not 0."""
    info, scores = read_info(run), nb.load_scores(run)
    is_unanswered = scores["status"].isin(UNANSWERED_STATUSES)
    kinds = scores["error_kind"].fillna(scores["status"]).mask(scores["exact_match"])
    return scores.assign(
        model=info.model,
        display=info.display,
        level=info.reasoning,
        exact_match=scores["exact_match"].astype("boolean").mask(is_unanswered),
        log_smape=scores["log_smape"].mask(is_unanswered),
        error_kind=kinds,
        parsed=scores["parsed"].str[:MAX_PARSED_LENGTH],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return write_study_pages("studies.references", __doc__, build, FOLDER, arguments)


if __name__ == "__main__":
    sys.exit(main())
