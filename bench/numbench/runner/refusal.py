"""Errors that end a run because no request can be answered, and what the user can do about them."""

from __future__ import annotations

import re

from numbench.errors import BadInput, NumbenchError
from numbench.models import ModelDescription
from numbench.models.facts import USER_CATALOGUE
from numbench.models.failures import connection_error
from numbench.records import Failure

_VERSION = re.compile(r"/v\d+\w*(?:/|$)")

_WAYS_OUT = {
    "temperature": f"add a rule with temperature = false to {USER_CATALOGUE}",
    "reasoning|thinking|effort": "try another level of --reasoning, or none",
    "response_?format|schema": "try --no-structured",
    r"max\w*_?tokens": "try another --max-tokens",
    "seed": f"add a rule with takes_seed = false to {USER_CATALOGUE}",
}
"""What to do if a provider rejects a request for a parameter: pattern of its name → way out."""


class Refusal(NumbenchError):
    """No request of the run can be answered, because of `failure`.

    had_answers: whether the server has answered a request of the run, before or since.
    """

    had_answers = False

    def __init__(self, model: str, failure: Failure) -> None:
        self.reason = failure.text.rstrip(".")
        super().__init__(f"{model}: {self.reason}; no further requests were sent")
        self.model, self.failure = model, failure


def explain_refusal(refusal: Refusal, description: ModelDescription) -> NumbenchError:
    """Return the error to show: a wrong server or model, with what to change, or `refusal`."""
    url = description.identity.get("base_url")
    base_url = None if url is None else str(url).rstrip("/")
    reason = connection_error(refusal.failure)
    if reason is not None and not refusal.had_answers:
        return _connection_error(refusal, base_url, reason)
    if refusal.failure.status == 401 and base_url and not refusal.had_answers:
        return NumbenchError(
            f"{refusal}; name the environment variable with the key for {base_url} by "
            "--api-key-env VARIABLE"
        )
    if refusal.failure.status in (400, 422):
        for pattern, way_out in _WAYS_OUT.items():
            if re.search(pattern, refusal.reason, re.IGNORECASE):
                return NumbenchError(f"{refusal}; {way_out}")
    if refusal.failure.status != 404 or refusal.had_answers:
        return refusal
    return _not_found_error(refusal, base_url)


def _connection_error(refusal: Refusal, base_url: str | None, reason: str) -> NumbenchError:
    if base_url is None:
        return NumbenchError(
            f"{refusal.model}: {reason}; check the network connection and run the same command "
            "again"
        )
    if re.search("ssl|certificate", reason, re.IGNORECASE):
        return BadInput(f"no TLS connection to {base_url} ({reason}); correct --base-url")
    cause = reason.rpartition(": ")[2]
    return BadInput(f"no server at {base_url} ({cause}); start it or correct --base-url")


def _not_found_error(refusal: Refusal, base_url: str | None) -> BadInput:
    """Return the error for a server that answers 404: the model or the URL is wrong."""
    advice = "check the name of the model"
    if base_url is None:
        advice += " (`numbench models PATTERN` searches those it knows)"
    elif _VERSION.search(base_url):
        advice += f" ({base_url}/models may list them) and --base-url"
    else:
        advice += f", or try --base-url {base_url}/v1"
    return BadInput(f"{refusal.model}: {refusal.reason}; {advice}")
