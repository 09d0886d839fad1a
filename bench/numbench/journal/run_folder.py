"""The files of a run folder: `run.json`, the responses and other lines, and the lock.

A run folder has one writer at a time, `numbench.journal.writer.Journal`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from numbench.core import jsonl
from numbench.errors import BadInput, NumbenchError
from numbench.journal.conversations import Conversations
from numbench.journal.identity import check_resumable, merge_run_info
from numbench.journal.served_models import ServedModels
from numbench.records import (
    Failure,
    Job,
    Response,
    Round,
    RunInfo,
)
from numbench.transforms import STORED_PROMPTS

INFO = "run.json"
RESPONSES = "responses.jsonl"
JOBS = "jobs.jsonl"
REQUESTS = "requests.jsonl"
ROUNDS = "rounds.jsonl"
SENT = ".sent-requests.jsonl"
"""Log of sent requests, so that a killed process leaves a record of those in flight."""
LOCK = ".lock"

_BETWEEN_RECORDS = re.compile(rb'(?<=\})[\s\0]*(?=\{")')

T = TypeVar("T")


class Run(NamedTuple):
    """A run as read from its folder.

    info: its display name says which other model than the one asked answered, if one did.
    responses: by `records.request_id`. served: who answered.
    """

    path: Path
    info: RunInfo
    responses: StoredResponses
    served: ServedModels


class StoredResponses(Mapping[str, Response]):
    """The responses of a run: at most one per item and sample, by `records.request_id`.

    Each is read from the journal when it is asked for; of a conversation, the response to the
    whole. offsets: of its last line in the journal, in bytes.
    """

    def __init__(self, path: Path) -> None:
        self.offsets: dict[str, int] = {}
        self._path = path
        self._earlier: dict[int, tuple[int, ...]] = {}
        self._continued: set[int] = set()

    def add(self, offset: int, response: Response, earlier: Sequence[int]) -> None:
        """Add or replace a response. earlier: the offsets of the replies before it."""
        self.offsets[response.request_id] = offset
        if earlier:
            self._earlier[offset] = tuple(earlier)
            self._continued.update(earlier)

    def read(self, offsets: Iterable[int]) -> Iterator[Response]:
        """Yield the responses whose last lines are at some offsets, in the order of these."""
        # On a full disk, there may be no journal yet.
        if not self.offsets:
            return
        lines = ((*self._earlier.get(offset, ()), offset) for offset in offsets)
        replies = jsonl.read_at(self._path, Response, chain.from_iterable(lines))
        conversations = Conversations()
        for offset, reply in replies:
            response = conversations.join(reply)
            if offset not in self._continued:
                yield response

    def __getitem__(self, key: str) -> Response:
        return next(self.read([self.offsets[key]]))

    def __contains__(self, key: object) -> bool:
        return key in self.offsets

    def __iter__(self) -> Iterator[str]:
        return iter(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)

    def values(self) -> ValuesView[Response]:
        """Return the responses, in the order in which their requests were first answered."""
        return _Values(self)


class _Values(ValuesView[Response]):
    """The values of `StoredResponses`, which are read in one go."""

    _mapping: StoredResponses

    def __iter__(self) -> Iterator[Response]:
        return self._mapping.read(self._mapping.offsets.values())


def read_run(folder: Path) -> Run:
    """Return the run in `folder`, which another process may be writing.

    An incomplete last line is skipped. Raises BadInput if there is no run, or with file and line
    number if a line is broken.
    """
    info = read_info(folder)
    responses, conversations = StoredResponses(folder / RESPONSES), Conversations()
    answered: set[str] = set()
    replies: dict[str, list[int]] = {}
    offset = 0
    for line, reply in iter_lines(folder, RESPONSES, Response):
        key, response = reply.request_id, conversations.join(reply)
        # An error never replaces an answer.
        if response.error is None or key not in answered:
            responses.add(offset, response, replies.get(key, ()) if reply.turn else ())
        if response.error is None:
            answered.add(key)
        if reply.turn or reply.is_continued:
            replies.setdefault(key, []).append(offset)
        offset += len(line)
    served = ServedModels(info)
    for response in responses.values():
        served.count(response)
    if served.answered_by:
        display = f"{info.display}, {served.answered_by}"
        info = msgspec.structs.replace(info, display=display)
    return Run(folder, info, responses, served)


def read_info(folder: Path) -> RunInfo:
    """Return the description of the run in `folder`. Raises BadInput if there is no run."""
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    return jsonl.read_json(folder / INFO, RunInfo)


def write_run(folder: Path, info: RunInfo, responses: Iterable[Response]) -> None:
    """Write a complete run: the responses, then `run.json`, each atomically.

    Raises BadInput if `folder` holds a measured run, whose responses would be lost, or other files.
    """
    with run_lock(folder):
        check_run_folder(folder)
        path = folder / INFO
        if path.is_file() and jsonl.read_json(path, RunInfo).source == "measured":
            raise BadInput(f"{folder} holds a measured run; choose another folder")
        jsonl.write_atomically(folder / RESPONSES, map(jsonl.encode, responses))
        jsonl.write_json(path, info)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Return the run folders at or below `paths`, each once, those below a path sorted.

    The `run.json` of a run names its folder. Raises BadInput if a path has none.
    """
    runs: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            names = [each.name for each in path.parent.glob("*")]
            similar = [path.with_name(each) for each in get_close_matches(path.name, names, n=1)]
            advice = f"did you mean {similar[0]}?" if similar else "give a run folder"
            raise BadInput(f"{path} does not exist; {advice}")
        if path.name == INFO and path.is_file():
            path = path.parent
        below = sorted(file.parent for file in path.rglob(INFO))
        if not below:
            raise BadInput(f"{path}: no run here or below (no {INFO})")
        for folder in below:
            runs.setdefault(folder.resolve(), folder)
    return [*runs.values()]


def iter_responses(folder: Path) -> Iterator[Response]:
    """Yield every response of the run in `folder`, including those that were replaced later.

    An incomplete last line is skipped. Raises BadInput for a broken line.
    """
    for _, response in iter_lines(folder, RESPONSES, Response):
        yield response


def iter_lines(folder: Path, name: str, kind: type[T]) -> Iterator[tuple[bytes, T]]:
    """Yield each line of a file of a run, newline included, with its record; see above."""
    try:
        yield from jsonl.read_lines_with_bytes(folder / name, kind, append_only=True)
    except BadInput as error:
        raise BadInput(f"{error}; `numbench verify {folder} --repair` keeps the others") from error


def read_jobs(folder: Path) -> dict[str, Job]:
    """Return the batch jobs of the run in `folder` by key, in their last state, oldest first."""
    jobs: dict[str, Job] = {}
    for _, job in iter_lines(folder, JOBS, Job):
        if (first := jobs.get(job.key)) is not None:
            job = msgspec.structs.replace(
                job, items=job.items or first.items, max_tokens=first.max_tokens
            )
        jobs[job.key] = job
    return jobs


def read_rounds(folder: Path) -> list[Round]:
    """Return the rounds of the measurement in `folder`, oldest first; none for other runs."""
    return [round_ for _, round_ in iter_lines(folder, ROUNDS, Round)]


class SentLine(Struct, frozen=True, omit_defaults=True):
    """One line: in the first, the time and the size of `responses.jsonl` when the call began.

    change: 1 if an attempt is sent, -1 if one has ended and is not billed.
    """

    item_id: str = ""
    sample: int = 0
    turn: int = 0
    change: int = 0
    responses_bytes: int = 0
    at: str = ""


def lost_requests(folder: Path) -> list[Response]:
    """Return a response for each request that a killed call left without one.

    It counts the attempts that may have been billed.
    """
    start, began, counts = 0, "", Counter[tuple[str, int, int]]()
    for line in _readable_lines(folder / SENT, SentLine):
        start, began = max(start, line.responses_bytes), max(began, line.at)
        counts[line.item_id, line.sample, line.turn] += line.change
    in_flight = +counts  # without what has ended
    for response in _readable_lines(folder / RESPONSES, Response, start) if in_flight else ():
        # One of an earlier call is read if damage has moved the lines.
        if (response.at or began) >= began:
            del in_flight[response.item_id, response.sample, response.turn]
    message = "the process was killed before the answer arrived"
    failure = Failure(kind="transient", message=message, possibly_billed=True)
    return [
        Response(
            item_id=item_id,
            sample=sample,
            turn=turn,
            attempts=attempts,
            at=timestamp(),
            error=failure,
            possibly_billed_attempts=attempts,
        )
        for (item_id, sample, turn), attempts in in_flight.items()
    ]


def _readable_lines(path: Path, kind: type[T], start: int = 0) -> Iterator[T]:
    """Yield the records from an offset that can be read; all if the file does not fit it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(max(0, start - 1))
        if start and file.read(1) != b"\n":
            file.seek(0)
        decoder = msgspec.json.Decoder(kind)
        for line in file:
            yield from map(decoder.decode, whole_records(line, decoder))


def whole_records(line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[bytes]:
    """Yield the records in a line: if it is damaged, after zeros or a mark, or joined to another.

    Each is a line of its own.
    """
    for text in _BETWEEN_RECORDS.split(line[line.find(b'{"') : line.rfind(b"}") + 1]):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            decoder.decode(text)
            yield text + b"\n"


def timestamp() -> str:
    """Return the current time in ISO format, in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def utc_time(text: str) -> str:
    """Return a time in ISO 8601, in UTC as it is by default; empty if it is unknown or no time."""
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""


def resumed_info(folder: Path, info: RunInfo) -> RunInfo:
    """Return the description of the run in `folder` once `info` resumes it. Writes nothing.

    Raises BadInput if the folder holds a run that `info` cannot resume.
    """
    if (folder / INFO).is_file():
        stored = jsonl.read_json(folder / INFO, RunInfo)
        check_resumable(folder, stored, info)
        return merge_run_info(folder, stored, info)
    if (folder / RESPONSES).exists():
        raise BadInput(
            f"{folder}: {RESPONSES} without {INFO}, so the model of these answers is unknown; "
            "choose another --out"
        )
    check_run_folder(folder)
    return info


def check_run_folder(folder: Path) -> None:
    """Raise BadInput unless a run may be written to `folder`."""
    own = (INFO, RESPONSES, JOBS, REQUESTS, ROUNDS, STORED_PROMPTS)
    jsonl.check_output_folder(folder, *own)


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder. Raises BadInput if another process holds it."""
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / LOCK, timeout=0))
            if jsonl.is_being_written(folder / RESPONSES):
                # The file of the lock was deleted.
                raise Timeout(str(folder / LOCK))
        except Timeout as error:
            raise BadInput(f"{folder}: another process is writing this run") from error
        except OSError as error:
            raise folder_error(folder, error) from error
        yield


def folder_error(folder: Path, error: OSError) -> NumbenchError:
    """Return the error for a folder that cannot be opened."""
    if error.errno in jsonl.DISK_FULL:
        return NumbenchError(
            f"{folder}: {error.strerror}; make room and run the same command again"
        )
    return BadInput(f"{folder}: {error.strerror}")
