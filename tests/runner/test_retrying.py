"""The rules of what is sent again, as a table."""

import asyncio
import math
from typing import Any

import pytest

from numbench.models.failures import connection_failure, failure_from_status, timeout_failure
from numbench.records import Completion, Failure, ItemSample
from numbench.runner.retrying import (
    MAX_LOST_RESPONSES,
    Attempts,
    Health,
    RetryPolicy,
    max_attempts,
    retrying,
)
from numbench.tasks.items import make_item

NEW: dict[str, Any] = {"was_reached": True}
ANSWERED: dict[str, Any] = {"was_reached": True, "last_answer": 0.0}
THREE: dict[str, Any] = {"failing": {"a", "b", "c"}}
REFUSED = connection_failure("refused", was_sent=False)
RESET = connection_failure("reset")
LIMITED, BROKEN, BUSY = (failure_from_status(status, "no") for status in (429, 500, 503))


@pytest.mark.parametrize(
    ("error", "health", "now", "expected"),
    [
        # One item fails: it has its attempts, and more while the rate is limited.
        (BROKEN, ANSWERED, 1, 6),
        (LIMITED, ANSWERED, 1, 24),
        (BUSY, ANSWERED, 1, 6),
        (RESET, ANSWERED, 1, 6),
        # Several fail with no answer in between: an outage, which is waited for a while.
        (BROKEN, ANSWERED | THREE, 1, math.inf),
        (BROKEN, ANSWERED | THREE, 601, 6),
        (LIMITED, ANSWERED | THREE, 601, 24),
        # Before the first answer only what says so, or a server that has gone, is an outage.
        (BROKEN, NEW | THREE, 1, 6),
        (LIMITED, NEW, 1, math.inf),
        (LIMITED, NEW, 601, 24),
        (BUSY, NEW, 1, math.inf),
        (REFUSED, NEW | THREE, 1, math.inf),
        (REFUSED, NEW | THREE, 601, 6),
        (REFUSED, NEW, 1, 6),
        # A server that never replied is hardly waited for.
        (REFUSED, THREE, 1, 3),
        (timeout_failure(1.0), THREE, 1, 6),
    ],
)
def test_how_often_an_item_may_be_sent(
    error: Failure, health: dict[str, Any], now: float, expected: float
) -> None:
    assert max_attempts(error, Health(**health), RetryPolicy(), now) == expected


def test_a_server_that_has_replied_is_waited_for() -> None:
    health = Health()
    for error, is_out_of_reach in ((REFUSED, True), (BUSY, False), (REFUSED, False)):
        health.count("a", error, 0.0)
        assert health.is_out_of_reach(error) == is_out_of_reach


def send(*errors: Failure, **policy: Any) -> tuple[int, list[float]]:
    """The attempts at a request that fails with these errors, the last for ever, and the waits."""
    attempts = Attempts(ItemSample(make_item("addition", "+", ("1", "1"), {})))
    health, waits = Health(was_reached=True, last_answer=0.0), list[float]()

    async def call(attempts: Attempts) -> Completion:
        attempts.number += 1
        error = errors[min(attempts.number, len(errors)) - 1]
        attempts.lost_responses += error.possibly_billed and error.status is None
        return Completion(error=error)

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async def main() -> Completion:
        rules = RetryPolicy(**policy)
        result: Completion = await retrying(health, rules, lambda: 1.0, pause)(call, attempts)
        return result

    assert asyncio.run(main()).error == errors[-1]
    return attempts.number, waits


def test_waits_grow_up_to_a_bound_unless_the_provider_names_one() -> None:
    number, waits = send(BROKEN, backoff=2.0, max_backoff=5.0)
    assert number == 6
    assert all(wait <= bound for wait, bound in zip(waits, (2, 4, 5, 5, 5), strict=True))
    asked = failure_from_status(429, "slow down", retry_after=7.0)
    assert send(asked, max_attempts=1)[1] == 3 * [7.0]
    assert send(asked, max_attempts=1, max_retry_after=3.0)[1] == 3 * [3.0]
    now = failure_from_status(429, "slow down", retry_after=0.0)
    assert sum(send(now, max_attempts=1)[1]) > 0


def test_what_is_permanent_or_lost_is_not_sent_for_ever() -> None:
    assert send(failure_from_status(400, "content_filter"))[0] == 1
    assert send(BROKEN, failure_from_status(401, "key"))[0] == 2
    assert send(RESET, max_attempts=20)[0] == MAX_LOST_RESPONSES
