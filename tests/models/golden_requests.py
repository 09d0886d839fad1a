"""The request body of every model of the catalogue at every level: `golden_requests.jsonl`.

After a change of the catalogue or of an adapter, `python -m tests.models.golden_requests` writes
the file again; review the difference before it is committed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numbench.models import Api, hosted_providers, open_model
from numbench.models.catalogue import load_catalogue
from numbench.models.providers import find_provider
from tests.models.adapter_calls import MESSAGES, valid_reply
from tests.servers import serve

GOLDEN_FILE = Path(__file__).with_suffix(".jsonl")


def configurations() -> Iterator[tuple[str, str, Api]]:
    """Yield every model, level and API format of the bundled catalogue."""
    for model in load_catalogue().model:
        provider = find_provider(model.route.partition("/")[0])
        assert provider is not None
        for level in model.levels:
            for api in provider.apis:
                yield model.name, level, api


def sent_requests() -> list[dict[str, Any]]:
    """Return what a server receives for each configuration: path and body."""
    requests = []
    with serve(valid_reply) as server:
        for model, level, api in configurations():
            asyncio.run(_request(model, level, server.url, api))
            (received,) = server.received
            server.received.clear()
            body = received.body
            if "generationConfig" in body:
                # Some versions of the SDK write the fields of this object in snake case.
                config = body["generationConfig"]["thinkingConfig"]
                body["generationConfig"]["thinkingConfig"] = {
                    _camel_case(key): value for key, value in config.items()
                }
            configuration = {"model": model, "level": level, "api": api}
            requests.append(configuration | {"path": received.path, "body": body})
    return requests


def read_golden_file() -> list[dict[str, Any]]:
    """Return the requests in the file."""
    return [json.loads(line) for line in GOLDEN_FILE.read_text(encoding="utf-8").splitlines()]


async def _request(model: str, level: str, url: str, api: Api) -> None:
    opened = open_model(model, level, url, api)
    await opened.model.answer(MESSAGES, opened.description.settings)
    await opened.model.close()


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


if __name__ == "__main__":
    hosted_providers.STREAMS_FROM_OTHER_SERVERS = True
    lines = [json.dumps(request, sort_keys=True) for request in sent_requests()]
    GOLDEN_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{GOLDEN_FILE}: {len(lines)} requests")
