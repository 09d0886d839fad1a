"""What the batch APIs share: listing jobs page by page, and collecting results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from numbench.models.json_fields import InvalidJson, decode_json, dict_or_empty, text_or_repr
from numbench.models.provider_errors import provider_error, transient_failure
from numbench.records import Completion


class JobPage(NamedTuple):
    """One page of a list of jobs. next_page: the token of the next page, empty for the last."""

    jobs: Sequence[Mapping[str, object]]
    next_page: str


async def list_jobs(
    get_page: Callable[[str], Awaitable[JobPage]],
) -> AsyncIterator[Mapping[str, object]]:
    """Yield the jobs of all pages. Raises ProviderError if the server repeats a page.

    `get_page` returns the page with a token; the token of the first page is empty.
    """
    token, seen_tokens = "", set[str]()
    while token not in seen_tokens:
        seen_tokens.add(token)
        page = await get_page(token)
        for job in page.jobs:
            yield job
        token = page.next_page
        if not token:
            return
    raise provider_error(transient_failure("the server lists the same jobs again"), ())


def iter_result_lines(content: bytes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the `custom_id` and the content of each line of a file of results.

    Unreadable lines are left out. Raises ProviderError if that leaves nothing: such a page is no
    file of results.
    """
    is_readable = not content.strip()
    for line in content.split(b"\n"):
        try:
            result = dict_or_empty(decode_json(line))
        except InvalidJson:
            continue
        is_readable = True
        yield text_or_repr(result.get("custom_id")), result
    if not is_readable:
        raise provider_error(transient_failure("the server sent no results"), ())


def add_result(results: dict[str, Completion], request_id: str, completion: Completion) -> None:
    """Add a result unless there is one with an answer: an answer takes precedence over an error."""
    if request_id not in results or results[request_id].error:
        results[request_id] = completion
