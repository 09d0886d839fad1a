"""Why a response holds no answer: the same for every protocol."""

from __future__ import annotations

from bench.records import Completion, Status


def unparsed_status(response: Completion) -> Status:
    """The status of a response in which no answer was found; the first cause that applies."""
    if response.error is not None:
        return "error"
    if response.finish_reason == "refusal":
        return "refused"
    if response.finish_reason == "length":
        return "truncated"
    return "unparseable" if response.text.strip() else "empty"
