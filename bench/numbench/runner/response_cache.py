"""A cache of answers that runs share (`--cache`): an SQLite file, keyed by the whole request."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import msgspec

from numbench import jsonl
from numbench.errors import BadInput
from numbench.journal import Journal, iter_responses
from numbench.records import CACHED, POSSIBLY_BILLED, ItemSample, Response, is_cached
from numbench.runner.spec import ResolvedRun

LOCATION_VARIABLE = "NUMBENCH_CACHE"
"""The environment variable with the path of the cache."""

_LOCK_SECONDS = 60.0
"""How long to wait for another process that writes the cache."""

_OF_ATTEMPTS = {"batch_job", "cost_of_failed_attempts", POSSIBLY_BILLED}
"""Fields of `extra` about the requests that were sent for an answer, and what they cost."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, response BLOB) WITHOUT ROWID"
)


def cache_path() -> Path:
    """Return the file of `LOCATION_VARIABLE`, else one in the user's folder of caches."""
    if location := os.environ.get(LOCATION_VARIABLE, "").strip():
        return Path(location).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache"
    return Path(base) / "numbench" / "answers.sqlite"


def copy_from_cache(resolved: ResolvedRun, requests: Iterable[ItemSample], journal: Journal) -> int:
    """Append the cached answers to `requests` to the journal, and return their number.

    The cost and the latency of such a response are unknown: it took neither in this run.
    """
    path, responses = cache_path(), []
    with _open(path) as database:
        for requested in requests:
            row = database.execute(
                "SELECT response FROM answers WHERE request = ?",
                (_request_key(resolved, requested),),
            ).fetchone()
            if row is not None:
                responses.append(_as_cached(_decode(path, row[0]), requested))
    journal.append_all(responses)
    return len(responses)


@contextmanager
def keep_answers(resolved: ResolvedRun, requests: Sequence[ItemSample]) -> Iterator[None]:
    """Add the answers of a run to the cache at the end of the context, also after an error."""
    try:
        yield
    except BaseException:
        # The error of the run matters more than one of the cache.
        with suppress(BadInput):
            add_answers(resolved, requests)
        raise
    add_answers(resolved, requests)


def add_answers(resolved: ResolvedRun, requests: Sequence[ItemSample]) -> None:
    """Add the answers in the journal of a run to the cache.

    The first answer to a request stays. Answers to retried requests are left out: a cache of
    selected answers would favour the model in every later run.
    """
    requested_of = {requested.id: requested for requested in requests}
    with _open(cache_path()) as database, database:
        for response in iter_responses(resolved.folder):
            requested = requested_of.get(response.request_id)
            is_new = not is_cached(response) and "retry_of" not in response.extra
            if requested is not None and response.error is None and is_new:
                database.execute(
                    "INSERT OR IGNORE INTO answers VALUES (?, ?)",
                    (_request_key(resolved, requested), msgspec.json.encode(response)),
                )


def _request_key(resolved: ResolvedRun, requested: ItemSample) -> bytes:
    """Return the hash of everything that is sent, where to, and for which sample."""
    messages, settings = resolved.request(requested, timeout=0.0)
    parts = {
        "identity": resolved.description.identity,
        "headers": dict(resolved.spec.headers),
        # Of the body as it is sent: a route may add parameters.
        "shape": resolved.info.requests.get(requested.task),
        "messages": messages,
        "settings": asdict(settings),
        "sample": requested.sample,
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).digest()


def _as_cached(response: Response, requested: ItemSample) -> Response:
    """Return the journal record of a cached answer: `extra` says so, and when it was measured."""
    extra = response.extra | {CACHED: True, "cost_source": "cache", "cached_at": response.at}
    return msgspec.structs.replace(
        response,
        item_id=requested.item.id,
        sample=requested.sample,
        cost=None,
        latency=None,
        attempts=0,
        extra={key: value for key, value in extra.items() if key not in _OF_ATTEMPTS},
    )


def _decode(path: Path, content: bytes) -> Response:
    try:
        return msgspec.json.decode(content, type=Response)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = jsonl.decode_error_message(error)
        raise BadInput(f"{path}: {reason}; delete this cache, or omit --cache") from error


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield the database at `path`, which is created if needed. Raises BadInput if it is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=_LOCK_SECONDS)) as database:
            database.execute(_TABLE)
            yield database
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(
            f"{path}: {reason}; set {LOCATION_VARIABLE} to another file, or omit --cache"
        ) from error
