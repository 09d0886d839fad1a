"""The rules of what is sent again, as a table."""

import asyncio
from typing import Any

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
from tests.support.case_tables import each_row

REFUSED = connection_failure("refused", was_sent=False)
RESET, LATE = connection_failure("reset"), timeout_failure(1.0)
LIMITED, BROKEN, BUSY = (failure_from_status(status, "no") for status in (429, 500, 503))


@each_row(__file__, "attempts")
def test_how_often_an_item_may_be_sent(
    why: str, error: str, health: dict[str, Any], now: float, expected: float
) -> None:
    state = Health(**(health | {"failing": set(health.get("failing", ()))}))
    assert max_attempts(globals()[error], state, RetryPolicy(), now) == expected, why


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
