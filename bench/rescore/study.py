"""Everything that a re-scoring shows, worked out from the study's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.report.layout import EXACT_MATCH, LOG_SMAPE, Entry, Estimate
from bench.report.measured import Measured, measure
from bench.report.published import published_entries
from bench.rescore.labels import Labels, audit_labels
from bench.rescore.ladder import Ladder, ladders
from bench.rescore.orders import Order, orders
from bench.scoring import score_run
from bench.study import Source, find_sources, import_study
from bench.tasks import TASKS

Config = tuple[str, str]
"""A model's displayed name and its reasoning level."""


class File(NamedTuple):
    """One of the study's files, with the SHA-256 of its bytes."""

    source: Source
    size: int
    digest: str


class Retaken(NamedTuple):
    """One score taken again: where it belongs, its ladder, its bounds and the printed score.

    estimate: the last rung with its 95 % bounds. printed: as the paper prints it, None where it
    does not.
    """

    config: Config
    table: str
    ladder: Ladder
    estimate: Estimate
    printed: str | None

    @property
    def reproduced(self) -> bool | None:
        """Whether the study's scoring gives the printed digits; None where none are printed."""
        return None if self.printed is None else shown(self.ladder.published) == self.printed


class Study(NamedTuple):
    """The study under its own scoring (`paper`) and under exact truth, runs in one order."""

    files: Sequence[File]
    folders: Sequence[Path]
    dataset: Dataset
    labels: Sequence[Labels]
    paper: Sequence[Measured]
    exact: Sequence[Measured]
    scores: Sequence[Retaken]
    orders: Sequence[Order]
    notes: Sequence[str]

    @property
    def configs(self) -> list[Config]:
        """The configurations at hand, in the order of all tables."""
        return [config_of(run.entry) for run in self.exact]

    def of_table(self, table: str) -> dict[str, dict[Config, Retaken]]:
        """The scores of one of the paper's tables: task → configuration → score."""
        found: dict[str, dict[Config, Retaken]] = {}
        for score in self.scores:
            if score.table == table:
                found.setdefault(score.ladder.task, {})[score.config] = score
        return {task: found[task] for task in TASKS if task in found}


def read_study(folder: Path, runs: Path, say: Callable[[str], None]) -> Study:
    """Import the files in `folder` to `runs`, and score them. BadInput as `import_study`."""
    notes: list[str] = []

    def note(message: str) -> None:
        notes.append(message)
        say(message)

    folders = import_study(folder, runs, note)
    # The import has already said which files are none of the study's.
    sources = find_sources(folder, lambda _: None)
    dataset = Dataset(runs / "dataset")
    labels = audit_labels(dataset)
    paper = measure([score_run(path, "paper") for path in folders])
    exact = measure([score_run(path) for path in folders])
    wrong = {fault.label.place for task in labels for fault in task.wrong}
    printed = {config_of(entry): entry for entry in published_entries()}
    scores = [
        _retaken(own, ladder, printed)
        for before, own in zip(paper, exact, strict=True)
        for ladder in ladders(before.run, own.run, wrong)
    ]
    return Study(
        [_file(source) for source in sources],
        [own.run.path for own in exact],
        dataset,
        labels,
        paper,
        exact,
        scores,
        orders(paper, exact),
        notes,
    )


def config_of(entry: Entry) -> Config:
    """The configuration of a row of the tables; a note tells apart two of one name."""
    return entry.name, entry.reasoning


def shown(value: Decimal | float, signed: bool = False) -> str:
    """A score in percent, or with `signed` a change in points, as the paper prints: one decimal."""
    return f"{value:+z.1f}" if signed else f"{value:z.1f}"


def _retaken(run: Measured, ladder: Ladder, printed: Mapping[Config, Entry]) -> Retaken:
    table = EXACT_MATCH.name
    if ladder.metric == "log_smape" or TASKS[ladder.task].metric == "exact_match":
        table = LOG_SMAPE.name
    config = config_of(run.entry)
    theirs = printed[config].tables[table].get(ladder.task) if config in printed else None
    return Retaken(
        config,
        table,
        ladder,
        run.entry.tables[table][ladder.task],
        None if theirs is None else shown(theirs.value),
    )


def _file(source: Source) -> File:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise BadInput(f"{source.path}: {error.strerror}") from error
    return File(source, len(data), sha256(data).hexdigest())
