"""The request bodies that models get: `golden_requests.jsonl`.

Every named model at every level, and models of all providers by their routes: at every level, with
numbers of reasoning tokens, and with options. After a change of the catalogue or of a format,
`python -m tests.models.golden_requests` writes the file again, with further routes if they are
given; review the difference before it is committed.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from numbench.models import Api, RequestSettings, Server, open_model
from numbench.models.catalogue import bundled_models, levels_of_model
from numbench.models.facts import bundled_tables
from numbench.models.http_client import HttpClient, Reply
from numbench.models.providers import find_provider
from tests.models.adapter_calls import MESSAGES

GOLDEN_FILE = Path(__file__).with_suffix(".jsonl")


def configurations(*more: str) -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    """Yield every model, level, API format and settings: those of the file, and new ones.

    These are all levels of every named model, of the routes in the file and of `more` routes; of a
    route also its default level.
    """
    golden = read_golden_file()
    named = {model.name: model for model in bundled_models()}
    known = [(r["model"], r["level"], r["api"], r.get("options", {})) for r in golden]
    routes = [each[0] for each in known if each[0] not in named and not _is_own_choice(each)]
    found: list[tuple[str, str | None, str, dict[str, Any]]] = []
    for model in named.values():
        levels = model.all_levels()
        found += [(model.name, level, api, {}) for level in levels for api in _apis(model.route)]
    for route in dict.fromkeys((*routes, *more)):
        levels = (None, *levels_of_model(route))
        found += [(route, level, api, {}) for level in levels for api in _apis(route)]
    yield from (each for each in known if each in found or _is_own_choice(each))
    yield from (each for each in found if each not in known)


def _is_own_choice(configuration: tuple[str, str | None, str, dict[str, Any]]) -> bool:
    """Return whether a configuration has options, or a number of reasoning tokens."""
    _, level, _, options = configuration
    return bool(options) or str(level).endswith("-tokens")


def _apis(route: str) -> tuple[str, ...]:
    provider = find_provider(route.partition("/")[0])
    assert provider is not None
    return provider.apis


def sent_requests(*more: str) -> list[dict[str, Any]]:
    """Return what a provider receives for each configuration: path, below its own URL, and body."""
    return asyncio.run(_sent_requests(*more))


def read_golden_file() -> list[dict[str, Any]]:
    """Return the requests in the file."""
    return [json.loads(line) for line in GOLDEN_FILE.read_text(encoding="utf-8").splitlines()]


async def _sent_requests(*more: str) -> list[dict[str, Any]]:
    requests = []
    for name, level, api, options in configurations(*more):
        sent: list[tuple[str, bytes]] = []

        async def record(
            client: object, method: str, url: str, headers: object, body: bytes, seconds: float
        ) -> Reply:
            sent.append((url, body))  # noqa: B023
            return Reply(200, {}, b"{}")

        server = Server(api=cast(Api, api), stream=not options)
        opened = open_model(name, level, server, needs_key=False)
        settings = RequestSettings(**(vars(opened.description.settings) | options))
        with patch.object(HttpClient, "request", record):
            await opened.model.answer(MESSAGES, settings)
        ((url, body),) = sent
        rows = {row.name: row for row in bundled_tables().provider}
        path = url.partition("?")[0].removeprefix(rows[opened.description.provider.name].url)
        configuration = {"model": name, "level": level, "api": api}
        configuration |= {"options": options} if options else {}
        requests.append(configuration | {"path": path, "body": json.loads(body)})
    return requests


if __name__ == "__main__":
    lines = [json.dumps(request, sort_keys=True) for request in sent_requests(*sys.argv[1:])]
    GOLDEN_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{GOLDEN_FILE}: {len(lines)} requests")
