"""Conversations: the replies to one question, each of which is a line of the journal.

A reply with calls of a tool is stored with the results of the calls, before the request that
continues the conversation. The last reply has no calls, or none that were executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from numbench.records import Failure, Response, Usage

UNFINISHED = Failure(kind="transient", message="the conversation has not ended")


class Conversations:
    """Joins the lines of a journal, in their order, to conversations.

    open: the replies of each conversation that has not ended, by `Response.request_id`.
    """

    def __init__(self) -> None:
        self.open: dict[str, tuple[Response, ...]] = {}

    def join(self, response: Response) -> Response:
        """Return the response to the whole conversation so far.

        It has the texts of the last reply, the earlier ones as `turns`, and sums of costs, tokens
        and times. A conversation that has not ended is a temporary failure.
        """
        key = response.request_id
        earlier = self.open.get(key, ())[: response.turn]
        if response.is_continued:
            # Without all replies before it, the conversation cannot be continued.
            is_whole = len(earlier) == response.turn
            self.open[key] = (*earlier, response) if is_whole else ()
            return replace(joined((*earlier, response)), error=UNFINISHED)
        if response.error is None:
            self.open.pop(key, None)
        return joined((*earlier, response))


def joined(replies: Sequence[Response]) -> Response:
    """Return the response to a conversation; see `Conversations.join`."""
    if len(replies) == 1:
        return replies[0]
    usages = [each.usage for each in replies]
    # A failure has no usage.
    usages = usages if replies[-1].error is None else usages[:-1]
    tokens = _sums(usages, "input", "reasoning", "visible", "generated")
    failed = sum(each.cost_of_failed_attempts or 0.0 for each in replies)
    return replace(
        replies[-1],
        turns=tuple(replies[:-1]),
        usage=Usage(**tokens, source=usages[0].source),
        cost_of_failed_attempts=failed or None,
        **_sums(replies, "cost", "latency", "attempts", "possibly_billed_attempts"),
    )


def _sums(records: Sequence[object], *names: str) -> dict[str, Any]:
    """Return the sums of fields of some records, as far as all of them are known."""
    return {name: sum_if_known(getattr(each, name) for each in records) for name in names}


def sum_if_known(values: Iterable[Any]) -> Any:
    """Return the sum, None if a value is unknown."""
    known = list(values)
    return None if None in known else sum(known)
