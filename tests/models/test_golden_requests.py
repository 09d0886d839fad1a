"""Every request of the catalogue: as in the reviewed file, and valid in the providers' SDKs."""

from typing import Any

import pytest
from pydantic import ValidationError

from numbench.models.formats.messages import API_VERSION
from tests.models.golden_requests import read_golden_file, sent_requests
from tests.support.case_tables import each_row
from tests.support.sdk_requests import validate


def test_requests_are_those_of_the_reviewed_file() -> None:
    golden, sent = read_golden_file(), sent_requests()
    changed = [new for old, new in zip(golden, sent, strict=True) if old != new]
    assert not changed, "review, then: python -m tests.models.golden_requests"


@pytest.mark.slow
def test_requests_validate_against_the_types_of_the_sdks() -> None:
    from anthropic import _constants

    assert _constants.ANTHROPIC_API_VERSION == API_VERSION
    for request in read_golden_file():
        # The fields of `--param` are the user's, whatever the type says.
        if not request.get("options", {}).get("params"):
            validate(request)


@pytest.mark.slow
@each_row(__file__, "rejected_requests")
def test_the_types_reject_a_wrong_request(model: str, changes: dict[str, Any]) -> None:
    request = next(each for each in read_golden_file() if each["model"] == model)
    with pytest.raises((ValidationError, AssertionError)):
        validate(request | {"body": request["body"] | changes})
