"""Each kind of error of our own has its status in Connect's REST API."""

import json
from typing import Any

import pytest

from keelman.model import errors
from keelman.worker.rest.answers import CONFLICT, on_keelman_error


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (errors.InvalidArgument("why"), 400, "why"),
        (errors.NotFound("why"), 404, "why"),
        (errors.Conflict("the group has another leader"), 409, CONFLICT),
        (errors.Unavailable("why"), 500, "why"),
    ],
)
async def test_an_error_of_our_own(error: errors.KeelmanError, status: int, message: str) -> None:
    request: Any = None
    answer = await on_keelman_error(request, error)
    assert answer.status_code == status
    assert json.loads(bytes(answer.body)) == {"error_code": status, "message": message}
