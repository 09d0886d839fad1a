"""The records: Item → Response → Score, and the descriptions of a dataset and a run.

All are frozen `msgspec` structs; `docs/reference.md` shows them. An unknown value is `null`, never
0. Unknown fields in a file are ignored, so that an older reader can read a newer file of the same
`schema`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from numbench.errors import BadInput

T = TypeVar("T")

SCHEMA = 1

Schema = Annotated[int, Meta(le=SCHEMA)]
"""The version of a stored record; a later one cannot be read."""

Answer = str | tuple[str, ...]
"""A decimal string, an interval's letter, or a sorted list of decimal strings."""

Scalar = str | int | float | bool | None


def answer_text(answer: Answer) -> str:
    """Return an answer as one text; a list as its numbers, separated by commas."""
    return answer if isinstance(answer, str) else ", ".join(answer)


class Difficulty(Struct, frozen=True, gc=False):
    """Task difficulty δ ∈ ℕ₀ on decimal and on binary digits (paper, "Problem difficulty")."""

    base10: int
    base2: int


class Item(Struct, frozen=True, kw_only=True, gc=False):
    """One question with its exact answer.

    operands: the numbers as printed in the prompt, in order (interval: the reference, then the
    boundaries). params: the sampling parameters, all integers.
    """

    id: str
    task: str
    prompt: str
    answer: Answer
    operands: tuple[str, ...]
    operator: str
    difficulty: Difficulty
    params: dict[str, int] = {}
    schema: Schema = SCHEMA


def request_id(item_id: str, sample: int) -> str:
    """Return the id of the request for one sample of an item: the item's own id for sample 0."""
    return f"{item_id}-sample-{sample}" if sample else item_id


def parse_request_id(text: str) -> tuple[str, int]:
    """Return the item's id and the sample that `request_id` was made from."""
    item_id, _, sample = text.partition("-sample-")
    return item_id, int(sample or 0)


class ItemSample(NamedTuple):
    """One request of a run: an item, and which of its samples, from 0.

    turns: the replies so far, if it continues a conversation.
    """

    item: Item
    sample: int = 0
    turns: tuple[Response, ...] = ()

    @property
    def id(self) -> str:
        """The id of the request, unique within the run."""
        return request_id(self.item.id, self.sample)

    @property
    def task(self) -> str:
        """The task of the item."""
        return self.item.task


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens of one request, with the same meaning for every provider.

    generated = reasoning + visible if all three are known. source: whether the provider reported
    the numbers or numbench counted them.
    """

    input: int | None = None
    reasoning: int | None = None
    visible: int | None = None
    generated: int | None = None
    source: Literal["reported", "counted"] | None = None


CACHE_WRITES = "cache_write_tokens"
"""The field of `extra` with the input tokens that the provider wrote to its cache."""

FailureKind = Literal["rate_limit", "transient", "item", "run"]


class Failure(Struct, frozen=True, kw_only=True):
    """Why a request has no answer. kind: what the runner does.

    rate_limit: wait `retry_after` seconds, then send fewer requests. transient: retry. item: this
    item can never be answered. run: no item can (bad key, unknown model), so stop at once.
    possibly_billed: whether the provider may have processed the request, as after a timeout.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    possibly_billed: bool = False

    @property
    def text(self) -> str:
        """The message after the HTTP status, with which some messages begin themselves."""
        if self.status is None:
            return self.message
        rest = re.sub(rf"^(HTTP )?{self.status}\b[\s:.-]*", "", self.message)
        return ": ".join(filter(None, (f"HTTP {self.status}", rest)))


FinishReason = Literal["stop", "length", "refusal", "other"]


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a function in a reply.

    id: the provider's, which may be empty. arguments: JSON, as the model wrote it. in_text: whether
    the call was in the text of the reply, not in the server's field for calls. result: what the
    model is told; None for a call that was not executed. failed: the result is an error message.
    correct_result: the result before a digit of it was changed (`faulty`). changed_digit: the
    position of that digit among those of the result, from 1, without leading zeros.
    """

    id: str = ""
    name: str
    arguments: str
    in_text: bool = False
    result: str | None = None
    failed: bool = False
    correct_result: str | None = None
    changed_digit: int | None = None


class Completion(Struct, frozen=True, kw_only=True):
    """The result of one request.

    text: as the server sent it, secrets masked, with any thinking that it left there. latency:
    seconds. cost: US dollars; cost_source: the provider, or the price table that it is from. calls:
    of the functions that the request offered. reply: with calls, the messages that repeat the reply
    in the next request, in the provider's format.
    """

    text: str = ""
    reasoning_text: str | None = None
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    cost: float | None = None
    latency: float | None = None
    served_model: str | None = None
    provider: str | None = None
    error: Failure | None = None
    cost_source: str | None = None
    extra: dict[str, Scalar] = {}
    calls: tuple[ToolCall, ...] = ()
    reply: tuple[dict[str, object], ...] = ()

    @property
    def is_continued(self) -> bool:
        """Whether the calls of this reply have results, which the next request sends."""
        return bool(self.calls) and self.calls[0].result is not None

    @property
    def is_final(self) -> bool:
        """Whether no further call replaces the result: it is an answer, or a permanent failure."""
        return not self.is_continued and (self.error is None or self.error.kind == "item")


_TYPED_SINCE: dict[str, type | tuple[type, ...]] = {
    "cost_source": str,
    "batch_job": str,
    "retry_of": str,
    "max_tokens": int,
    "cost_of_failed_attempts": (int, float),
    "possibly_billed_attempts": int,
}
"""Fields of a response that version 0.3.0 wrote into `extra`."""


class Response(Completion, frozen=True, kw_only=True):
    """A Completion as stored in the journal: one line of `responses.jsonl`.

    sample: the index of the sample of its item. batch_job: the provider's id of the job that it is
    from. retry_of: the kind of response that it replaces (`--retry`), and max_tokens the token
    limit of that retry if it differs from that of the run. cost_of_failed_attempts: part of `cost`.
    possibly_billed_attempts: failed attempts of unknown cost that may have been billed. turn: the
    number of replies before this one in its conversation. turns: these replies, in the response to
    a whole conversation (`conversations.Conversations`), whose other fields then are sums.
    """

    item_id: str
    sample: int = 0
    attempts: int = 1
    at: str | None = None
    batch_job: str | None = None
    retry_of: str | None = None
    max_tokens: int | None = None
    cost_of_failed_attempts: float | None = None
    possibly_billed_attempts: int = 0
    turn: int = 0
    turns: tuple[Response, ...] = ()
    schema: Schema = SCHEMA

    def __post_init__(self) -> None:
        """Move what an earlier version wrote into `extra` to its field."""
        if self.extra and not _TYPED_SINCE.keys().isdisjoint(self.extra):
            extra = dict(self.extra)
            for name, kind in _TYPED_SINCE.items():
                if isinstance(value := extra.pop(name, None), kind):
                    force_setattr(self, name, value)
            force_setattr(self, "extra", extra)

    @property
    def known_cost(self) -> float | None:
        """What is known of the cost: that of the failed attempts if that of the answer is not."""
        return self.cost_of_failed_attempts if self.cost is None else self.cost

    @property
    def request_id(self) -> str:
        """The id of the request that this is the response to."""
        return request_id(self.item_id, self.sample)


JobState = Literal["planned", "submitted", "collected", "lost"]


class Job(Struct, frozen=True, kw_only=True):
    """A batch job of a run: one line of `jobs.jsonl` per change of state; the last line is current.

    key: numbench's own key, stored in the job at the provider, so that a job can be found even if
    its id was not saved. id: the provider's id. items: the ids of its requests. max_tokens: their
    token limit if it differs from that of the run. Both are in the first line only. state lost: the
    job was never created, so nothing was billed.
    """

    key: str
    state: JobState
    id: str | None = None
    items: tuple[str, ...] = ()
    at: str | None = None
    max_tokens: int | None = None
    schema: Schema = SCHEMA

    @property
    def is_active(self) -> bool:
        """Whether the job may still return answers."""
        return self.state in ("planned", "submitted")


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """The request for the first item of a task: one line of `requests.jsonl`.

    body: as it is sent, secrets masked. sha256: hash of its shape: everything but the question,
    seeds and stream parameters.
    """

    task: str
    item_id: str
    body: dict[str, object]
    sha256: str
    schema: Schema = SCHEMA


Status = Literal["ok", "unparseable", "empty", "truncated", "refused", "error", "missing"]
ErrorKind = Literal[
    "sample_std", "sign", "magnitude", "rounding", "precision", "carry", "swap", "digit",
    "rough", "other", "order", "count", "altered", "choice", "operand", "form", "notation",
    "format",
]  # fmt: skip
"""How an answer is wrong; `scoring/categories.toml` defines each kind."""

ProtocolName = Literal["exact", "lenient", "paper"]
ReadingRule = Literal["json", "object", "unclosed", "bare", "lenient"]
"""How an answer was read, from the requested format to free text."""


class Score(Struct, frozen=True, kw_only=True):
    """The score of one response to one item under one protocol.

    sample: the index of the response among those to the item.
    status missing: an item of the run without a response. rule: how the answer was read; None
    without an answer, and under `paper`. log_smape: in [0, 1], None for the comparison
    tasks. correct_digits: leading significant digits that agree with the truth. error_kind: for
    wrong answers and unparseable texts, None under `paper`.
    """

    item_id: str
    protocol: ProtocolName
    status: Status
    exact_match: bool
    log_smape: float | None = None
    parsed: Answer | None = None
    rule: ReadingRule | None = None
    error_kind: ErrorKind | None = None
    correct_digits: int | None = None
    sample: int = 0
    schema: Schema = SCHEMA


class FileEntry(Struct, frozen=True, kw_only=True):
    """One file of a dataset.

    ids: the SHA-256 of all its item ids, concatenated. It identifies the content even if the bytes
    differ, as those of Parquet files do between versions of the library that writes them.
    """

    task: str
    file: str
    items: int
    bytes: int
    sha256: str
    ids: str = ""


class Manifest(Struct, frozen=True, kw_only=True):
    """`manifest.json` of a dataset folder. sha256: over names and hashes of all files."""

    name: str
    generator: str
    seed: int | None
    split: str
    settings: dict[str, Scalar]
    files: tuple[FileEntry, ...]
    sha256: str
    schema: Schema = SCHEMA


class DatasetRef(Struct, frozen=True, kw_only=True):
    """The dataset of a run. path: its folder, relative to the run folder if possible."""

    name: str
    path: str
    sha256: str


PAPER = "paper"
"""The name of the paper's prompt set, which never changes."""


class PromptRef(Struct, frozen=True, kw_only=True):
    """The prompts of a run.

    sha256: hash of all files of the prompt set. tasks: hash of the prompts of each task, empty if
    they are not known. working: whether the prompts let the model write text before its answer.
    """

    name: str
    sha256: str
    tasks: dict[str, str] = {}
    working: bool = False

    @property
    def label(self) -> str:
        """The name; of any other set than `paper` with the start of its hash: `steps@3f9c2a`."""
        return self.name if self.name == PAPER else f"{self.name}@{self.sha256[:6]}"


class ItemShard(Struct, frozen=True):
    """Part `index`, from 1, of a dataset that is divided into `count` parts.

    It has every `count`-th item of each task, so the parts of a task differ by at most one item,
    and an item stays in its part if the run's limit is raised.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def select(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items of one task that are in this part, in their order."""
        return items[self.index - 1 :: self.count]


def parse_shard(text: str | None) -> ItemShard | None:
    """Return the shard that `2/8` names; None for `1/1`, which is the whole, and for None.

    Raises BadInput for other texts.
    """
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text.strip())
    index, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= index <= count:
        raise BadInput(f"--shard {text}: give i/n with i from 1 to n, for example 2/8")
    return ItemShard(index, count) if count > 1 else None


class HorizonInfo(Struct, frozen=True, kw_only=True):
    """How a run measures horizons (`numbench horizon`), in `run.json`.

    precision: wanted posterior standard deviation of log₂ h50. max_items: per task. question_seed:
    of the items. largest: the largest size of each task that may be asked. generator, design: the
    versions of the rules for the items and for the sizes of a round.
    """

    precision: float
    max_items: int
    question_seed: int
    largest: dict[str, int]
    generator: str
    design: str


class Round(Struct, frozen=True, kw_only=True):
    """The items of one round of a task's measurement: one line of `rounds.jsonl`.

    It is on disk before any of its items is asked.
    """

    task: str
    items: tuple[str, ...]
    schema: Schema = SCHEMA


class RunInfo(Struct, frozen=True, kw_only=True):
    """`run.json` of a run folder.

    settings: everything that shapes a request (temperature, token limit, level parameters), and
    the number of `samples` per item if it is more than one.
    limit: the number of items per task, None for all. shard: the part of these items that the run
    includes, None for all. source: "measured" by numbench, or "imported" from other files.
    requests: the hash of the shape of the requests of each task (`RecordedRequest`), empty for
    models in this process. price: US dollars per million tokens,
    with their source, when the run was last continued; None if unknown. The costs of responses are
    in the journal. horizon: how the run measures horizons; None for a run on a dataset.
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
    requests: dict[str, str] = {}
    shard: ItemShard | None = None
    price: dict[str, object] | None = None
    horizon: HorizonInfo | None = None
    transform: str | None = None
    schema: Schema = SCHEMA

    @property
    def variant_label(self) -> str:
        """How the items are asked: `prompts steps, swap`; empty for the items as they are."""
        prompts = "" if self.prompt.name == PAPER else f"prompts {self.prompt.name}"
        return ", ".join(filter(None, (prompts, self.transform)))

    def select_items(self, items: Sequence[T]) -> Sequence[T]:
        """Return which of the dataset's `items` of one task the run includes, in their order."""
        limited = items[: self.limit]
        return self.shard.select(limited) if self.shard else limited

    @property
    def samples(self) -> int:
        """The number of samples per item."""
        samples = self.settings.get("samples")
        return samples if isinstance(samples, int) and samples > 1 else 1


class Estimate(NamedTuple):
    """A value with its 95% interval, whose ends are None if they are unknown."""

    value: float
    low: float | None = None
    high: float | None = None
