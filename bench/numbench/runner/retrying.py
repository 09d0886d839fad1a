"""When a failed request is sent again: the rules that tenacity applies to every request."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential

from numbench.models.failures import Unreached
from numbench.records import Completion, Failure, ItemSample

MAX_LOST_RESPONSES = 3
"""How often a request is sent whose response does not arrive: each of them may be billed."""

OUTAGE_THRESHOLD = 3
"""Number of items that fail, with no answer in between, from which an outage is assumed."""

FIRST_CONNECTION_ATTEMPTS = 3
"""Attempts to connect to a server that has not replied to any request of the run."""

RATE_LIMIT_ATTEMPTS_FACTOR = 4
"""How many times more attempts a rate-limited item gets: the provider is up and will answer."""

OVERLOADED = (503, 529)
"""HTTP statuses of an overload, which is waited for like a rate limit until the first answer."""


@dataclass(frozen=True)
class RetryPolicy:
    """Attempts and waits of a run. Times are in seconds.

    backoff, max_backoff: scale and bound of the waits between attempts, unless the provider names
    one. max_retry_after: the longest wait that a Retry-After header may impose.
    interrupt_grace: how long requests in flight may take to finish after an interrupt.
    outage_timeout: how long no item may be answered, after some were or because of a rate limit,
    before the run gives up.
    job_lookup_timeout: how long to look for a batch job whose submission was cut off.
    poll_interval, max_poll_interval: first and longest wait between two looks at batch jobs.
    max_batch_attempts: number of batch jobs that may contain the same item.
    """

    max_attempts: int = 6
    backoff: float = 1.0
    max_backoff: float = 60.0
    max_retry_after: float = 3600.0
    interrupt_grace: float = 20.0
    outage_timeout: float = 600.0
    job_lookup_timeout: float = 60.0
    poll_interval: float = 5.0
    max_poll_interval: float = 60.0
    max_batch_attempts: int = 3


DEFAULT_POLICY = RetryPolicy()


@dataclass
class Attempts:
    """The attempts at one request.

    number: attempts so far. failed_cost: US dollars that failed attempts cost.
    possibly_billed_attempts: failed attempts of unknown cost that the provider may have processed,
    such as timeouts. lost_responses: failed attempts without an HTTP error that were billed, or may
    have been.
    """

    requested: ItemSample
    number: int = 0
    failed_cost: float = 0.0
    possibly_billed_attempts: int = 0
    lost_responses: int = 0
    is_in_flight: bool = False
    is_stored: bool = False


@dataclass
class Health:
    """What the replies to a run say about its provider.

    start, last_answer: times of one clock, in seconds. was_reached: whether the server has replied
    to this call or an earlier one; then it is only out of reach. failing: the ids of the requests
    that have failed since the last answer. last_failure: why the last attempt failed, empty after
    an answer.
    """

    start: float = 0.0
    was_reached: bool = False
    last_answer: float | None = None
    failing: set[str] = field(default_factory=set)
    last_failure: str = ""

    def count(self, request_id: str, error: Failure | None, now: float) -> None:
        """Count the result of an attempt."""
        self.was_reached |= not isinstance(error, Unreached)
        if error is None:
            self.failing.clear()
            self.last_failure, self.last_answer = "", now
        else:
            self.failing.add(request_id)
            self.last_failure = error.text

    def is_out_of_reach(self, error: Failure) -> bool:
        """Return whether there is no connection to a server that has never replied to the run."""
        return not self.was_reached and isinstance(error, Unreached)


def is_retryable(failure: Failure | None) -> bool:
    """Return whether a further attempt may succeed."""
    return failure is not None and failure.kind in ("rate_limit", "transient")


def max_attempts(error: Failure, health: Health, policy: RetryPolicy, now: float) -> float:
    """Return how often an item may be sent whose last attempt has failed with `error`.

    The attempts are not limited, for `outage_timeout` since the last answer or the start, while the
    item is not the cause: several items fail although some were answered before, or the provider
    limits the rate from the start, or the server has gone since its first reply.
    """
    if health.is_out_of_reach(error):
        return min(FIRST_CONNECTION_ATTEMPTS, policy.max_attempts)
    is_new = health.last_answer is None
    is_limited = error.kind == "rate_limit" or (error.status in OVERLOADED and is_new)
    is_outage = len(health.failing) >= OUTAGE_THRESHOLD
    if is_new:
        is_outage = is_limited or (is_outage and isinstance(error, Unreached))
    since = now - (health.start if health.last_answer is None else health.last_answer)
    if is_outage and since < policy.outage_timeout:
        return math.inf
    return policy.max_attempts * (RATE_LIMIT_ATTEMPTS_FACTOR if is_limited else 1)


def retrying(
    health: Health,
    policy: RetryPolicy,
    clock: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> AsyncRetrying:
    """Return what calls `send(attempts)` until a request is answered or has failed.

    Its call returns the last result. Requests that are sent at the same time need a copy each.
    """
    backoff = wait_random_exponential(multiplier=policy.backoff, max=policy.max_backoff)

    def is_last(state: RetryCallState) -> bool:
        attempts: Attempts = state.args[0]
        limit = max_attempts(_failure(state), health, policy, clock())
        return attempts.number >= limit or attempts.lost_responses >= MAX_LOST_RESPONSES

    def wait(state: RetryCallState) -> float:
        """Return the wait that the provider asks for, else an exponential one with jitter.

        Some providers ask for none, or for milliseconds, as long as their limit is exceeded.
        """
        asked = _failure(state).retry_after or 0.0
        own = backoff(state) if asked < policy.backoff else 0.0
        return max(own, min(asked, policy.max_retry_after))

    return AsyncRetrying(
        retry=retry_if_result(lambda completion: is_retryable(completion.error)),
        stop=is_last,
        wait=wait,
        sleep=pause,
        retry_error_callback=_result,
    )


def _result(state: RetryCallState) -> Completion:
    assert state.outcome is not None
    completion: Completion = state.outcome.result()
    return completion


def _failure(state: RetryCallState) -> Failure:
    error = _result(state).error
    assert error is not None
    return error
