"""Compute all results of re-scoring from the study's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.reporting.convention_table import ConventionCell, convention_cells
from numbench.reporting.entries import MeasuredRun, measure, published_entries
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE, Entry, Estimate
from numbench.rescore.pairwise_changes import PairwiseChange, pairwise_changes
from numbench.rescore.score_changes import ScoreChange, file_digest_key, score_changes
from numbench.rescore.score_decomposition import (
    LabelAudit,
    ScoreDecomposition,
    audit_labels,
    decompose_scores,
)
from numbench.scoring import score_run
from numbench.study_import import StudyFile, find_study_files, import_study
from numbench.tasks import PAPER_TASKS, TASKS

ConfigKey = tuple[str, str]
"""Displayed name of a model and reasoning level."""


class InputFile(NamedTuple):
    """One of the study's files: size in bytes and SHA-256."""

    source: StudyFile
    size: int
    digest: str


class RescoredCell(NamedTuple):
    """One re-scored score of a configuration.

    table: name of the paper's table with the score. estimate: the exact score with its 95 %
    bounds. printed: the score as printed in the paper, None if the paper does not print it.
    """

    config: ConfigKey
    table: str
    decomposition: ScoreDecomposition
    estimate: Estimate
    printed: str | None

    @property
    def reproduced(self) -> bool | None:
        """Whether the study's scoring gives the printed score; None if none is printed."""
        return (
            None
            if self.printed is None
            else format_score(self.decomposition.published) == self.printed
        )


class StudyAnalysis(NamedTuple):
    """The study by its own scoring (`paper`) and by exact scoring; runs in the same order."""

    files: Sequence[InputFile]
    folders: Sequence[Path]
    dataset: Dataset
    labels: Sequence[LabelAudit]
    paper: Sequence[MeasuredRun]
    exact: Sequence[MeasuredRun]
    scores: Sequence[RescoredCell]
    pairwise_changes: Sequence[PairwiseChange]
    score_changes: Sequence[ScoreChange]
    conventions: Sequence[ConventionCell]
    notes: Sequence[str]

    @property
    def configs(self) -> list[ConfigKey]:
        """The available configurations, in the order of all tables."""
        return [config_of(run.entry) for run in self.exact]

    def of_table(self, table: str) -> dict[str, dict[ConfigKey, RescoredCell]]:
        """Return the scores of one of the paper's tables: task → configuration → score."""
        cells: dict[str, dict[ConfigKey, RescoredCell]] = {}
        for score in self.scores:
            if score.table == table:
                cells.setdefault(score.decomposition.task, {})[score.config] = score
        return {task: cells[task] for task in PAPER_TASKS if task in cells}


def analyze_study(folder: Path, runs: Path, on_message: Callable[[str], None]) -> StudyAnalysis:
    """Import the files in `folder` to `runs`, and score them.

    Raises BadInput like `import_study`.
    """
    notes: list[str] = []

    def note(message: str) -> None:
        notes.append(message)
        on_message(message)

    folders = import_study(folder, runs, note)
    # `import_study` has already reported the files that it skips.
    sources = find_study_files(folder, lambda _: None)
    dataset = Dataset(runs / "dataset")
    labels = audit_labels(dataset)
    paper = measure([score_run(path, "paper") for path in folders])
    exact = measure([score_run(path) for path in folders])
    wrong = {error.label.location for audit in labels for error in audit.wrong}
    printed = {config_of(entry): entry for entry in published_entries()}
    scores = [
        _rescored_cell(by_truth, decomposition, printed)
        for by_study, by_truth in zip(paper, exact, strict=True)
        for decomposition in decompose_scores(by_study.scored, by_truth.scored, wrong)
    ]
    files = [_input_file(source) for source in sources]
    digests = {file_digest_key(file.source): file.digest for file in files}
    return StudyAnalysis(
        files,
        [run.scored.path for run in exact],
        dataset,
        labels,
        paper,
        exact,
        scores,
        pairwise_changes(paper, exact),
        score_changes(exact, digests),
        convention_cells(exact),
        notes,
    )


def config_of(entry: Entry) -> ConfigKey:
    """Return the configuration of a row of the tables."""
    return entry.name, entry.reasoning


def format_score(value: Decimal | float, signed: bool = False) -> str:
    """Format a score in percent, or a signed change in points, with one decimal as in the paper."""
    return f"{value:+z.1f}" if signed else f"{value:z.1f}"


def _rescored_cell(
    run: MeasuredRun, decomposition: ScoreDecomposition, printed: Mapping[ConfigKey, Entry]
) -> RescoredCell:
    table = EXACT_MATCH.name
    if decomposition.metric == "log_smape" or TASKS[decomposition.task].metric == "exact_match":
        table = LOG_SMAPE.name
    config = config_of(run.entry)
    published = printed[config].tables[table].get(decomposition.task) if config in printed else None
    return RescoredCell(
        config,
        table,
        decomposition,
        run.entry.tables[table][decomposition.task],
        None if published is None else format_score(published.value),
    )


def _input_file(source: StudyFile) -> InputFile:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise BadInput(f"{source.path}: {error.strerror}") from error
    return InputFile(source, len(data), sha256(data).hexdigest())
