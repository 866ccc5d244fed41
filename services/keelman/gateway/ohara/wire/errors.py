"""Errors in Ohara's form: a status, the name of a Java class and a message."""

from __future__ import annotations

from functools import partial
from typing import Any

from keelman.model import errors

BRANCH = "0.11"
API_URL = f"https://oharastream.github.io/en/docs/{BRANCH}/rest-api/"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
ILLEGAL_STATE = "java.lang.IllegalStateException"
NO_SUCH = "java.util.NoSuchElementException"
BAD_VALUE = "spray.json.DeserializationException"
BAD_JSON = "spray.json.JsonParser$ParsingException"
DATA_CHECK = "oharastream.ohara.configurator.route.DataCheckException"
UNSUPPORTED_OPERATION = "java.lang.UnsupportedOperationException"
TIMEOUT = "java.util.concurrent.TimeoutException"
RUNTIME = "java.lang.RuntimeException"
NO_STACK = "N/A"


class OharaError(Exception):
    """An error as Ohara's answer. `api_url`: with the page that lists the calls."""

    def __init__(self, status: int, code: str, message: str, *, api_url: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message or "unknown"
        self.api_url = api_url

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the answer; the secrets known to this process are removed when it is sent."""
        body = {"code": self.code, "message": self.message, "stack": NO_STACK}
        return body | {"apiUrl": self.api_url} if self.api_url else body


bad_value = partial(OharaError, 400, BAD_VALUE)
"""A field, or a name in the URL, that is not legal."""
bad_json = partial(OharaError, 400, BAD_JSON)
"""A body that is no JSON."""
illegal_argument = partial(OharaError, 400, ILLEGAL_ARGUMENT)
"""A conflict: of ports, of names in Kafka, with users of the object."""
no_such = partial(OharaError, 400, NO_SUCH)
"""A missing object: 400, as in Ohara."""
data_check = partial(OharaError, 500, DATA_CHECK)
"""An object that another one names is missing, or is not in the required state."""
illegal_state = partial(OharaError, 500, ILLEGAL_STATE)
"""An object that exists already, or is about to start or stop."""
unsupported_operation = partial(OharaError, 500, UNSUPPORTED_OPERATION)
"""A call that this kind of object does not support."""


def unsupported(path: str) -> OharaError:
    """Returns the error for an unknown path, or method on it. `path` is without its first slash."""
    message = f"please see link to find the available APIs. input url:{path}"
    return OharaError(404, f"Unsupported API: {path}", message, api_url=API_URL)


def error_of(error: errors.KeelmanError) -> OharaError:
    """Returns Ohara's error for an error of ours, for any call."""
    match error:
        case errors.NotFound():
            return no_such(error.message)
        case errors.AlreadyExists():
            return illegal_state(error.message)
        case errors.Unavailable() | errors.DeadlineExceeded():
            return OharaError(500, TIMEOUT, error.message)
        case errors.Internal() | errors.Conflict():
            return OharaError(500, RUNTIME, error.message)
        case _:
            return illegal_argument(error.message)
