"""The records that travel: Item → Response → Score, and what describes a dataset and a run.

All are frozen `msgspec` structs. Their JSON form, with an example of each, is documented in
`docs/records.md`. A field that is not known is `null`, never 0. Unknown fields in a file are
ignored, so that an older reader can read a newer file of the same `schema`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SCHEMA = 1

Answer = str | tuple[str, ...]
"""A decimal string, an interval's letter, or a sorted list of decimal strings."""

Scalar = str | int | float | bool | None


class Difficulty(Struct, frozen=True):
    """Task difficulty δ ∈ ℕ₀ on decimal and on binary digits (paper, "Problem difficulty")."""

    base10: int
    base2: int


class Item(Struct, frozen=True, kw_only=True):
    """One question with its exact answer.

    `operands` are the numbers as printed in the prompt, in their order (for interval: the
    reference, then the boundaries). `params` are the sampling parameters, all integers.
    """

    id: str
    task: str
    prompt: str
    answer: Answer
    operands: tuple[str, ...]
    operator: str
    difficulty: Difficulty
    params: dict[str, int]
    schema: int = SCHEMA


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one request, with one meaning for every provider.

    generated = reasoning + visible wherever all three are known. `source` says whether the
    provider reported the figures or we counted them.
    """

    input: int | None = None
    reasoning: int | None = None
    visible: int | None = None
    generated: int | None = None
    source: Literal["reported", "counted"] | None = None


FailureKind = Literal["rate_limit", "transient", "item", "run"]


class Failure(Struct, frozen=True, kw_only=True):
    """Why a request brought no answer, as a value on which the runner acts.

    rate_limit: wait `retry_after` seconds, go slower. transient: try again. item: this item
    can never be answered. run: no item can (bad key, unknown model): stop at once.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None


FinishReason = Literal["stop", "length", "refusal", "other"]


class Completion(Struct, frozen=True, kw_only=True):
    """What a model gave back for one request. Latency in seconds, cost in US dollars."""

    text: str = ""
    reasoning_text: str | None = None
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    cost: float | None = None
    latency: float | None = None
    served_model: str | None = None
    provider: str | None = None
    error: Failure | None = None
    extra: dict[str, Scalar] = {}


class Response(Completion, frozen=True, kw_only=True):
    """A Completion as the journal keeps it: one line of `responses.jsonl`."""

    item_id: str
    attempts: int = 1
    at: str | None = None
    schema: int = SCHEMA


JobState = Literal["planned", "submitted", "collected", "lost"]


class Job(Struct, frozen=True, kw_only=True):
    """A batch job of a run: one line of `jobs.jsonl` for each of its states, the last one holds.

    key: ours, written into the job at the provider, so that a job whose id was never noted is
    found again. id: the provider's. items: the ids of the items it asks, in the first line only.
    lost: no such job came to be, so nothing was paid.
    """

    key: str
    state: JobState
    id: str | None = None
    items: tuple[str, ...] = ()
    at: str | None = None
    schema: int = SCHEMA

    @property
    def under_way(self) -> bool:
        """Whether it may still bring answers."""
        return self.state in ("planned", "submitted")


Status = Literal["ok", "unparseable", "empty", "truncated", "refused", "error", "missing"]
ErrorKind = Literal[
    "sign", "magnitude", "rounding", "precision", "carry", "swap", "digit", "other",
    "order", "count", "altered", "choice", "operand", "notation", "format",
]  # fmt: skip
"""How an answer is wrong; `bench/scoring/taxonomy.py` defines each kind."""

ProtocolName = Literal["exact", "paper"]


class Score(Struct, frozen=True, kw_only=True):
    """The judgement of one response to one item under one protocol.

    `rule` is the parsing rule that found the answer (1 to 4 for `exact`). `log_smape` is in
    [0, 1] and None for the comparison tasks. `correct_digits` counts the leading significant
    digits that agree with the truth. `missing` is an item of the run that has no response.
    `error_kind` is known to `exact` alone, for wrong answers and unparseable texts.
    """

    item_id: str
    protocol: ProtocolName
    status: Status
    exact_match: bool
    log_smape: float | None = None
    parsed: Answer | None = None
    rule: int | None = None
    error_kind: ErrorKind | None = None
    correct_digits: int | None = None
    schema: int = SCHEMA


class FileEntry(Struct, frozen=True, kw_only=True):
    """One file of a dataset.

    `ids` is the SHA-256 of all its item ids, one after the other: it names the content where the
    bytes may differ, as those of Parquet do between versions of the library that writes it.
    """

    task: str
    file: str
    items: int
    bytes: int
    sha256: str
    ids: str = ""


class Manifest(Struct, frozen=True, kw_only=True):
    """`manifest.json` of a dataset folder. `sha256` covers names and hashes of all files."""

    name: str
    generator: str
    seed: int | None
    split: str
    settings: dict[str, Scalar]
    files: tuple[FileEntry, ...]
    sha256: str
    schema: int = SCHEMA


class DatasetRef(Struct, frozen=True, kw_only=True):
    """Which dataset a run answers: `path` is where it lay, relative to the run where possible."""

    name: str
    path: str
    sha256: str


class PromptRef(Struct, frozen=True, kw_only=True):
    """Which prompts a run used."""

    name: str
    sha256: str


class RunInfo(Struct, frozen=True, kw_only=True):
    """`run.json` of a run folder.

    `settings` holds all that shapes a request (temperature, token limit, level parameters).
    `limit` is the number of items per task, None for all. `source` tells a run of ours
    ("measured") from one read from somebody's files ("imported").
    """

    model: str
    display: str
    reasoning: str
    dataset: DatasetRef
    prompt: PromptRef
    tasks: tuple[str, ...]
    limit: int | None
    settings: dict[str, object]
    versions: dict[str, str]
    created: str
    source: Literal["measured", "imported"] = "measured"
    schema: int = SCHEMA
