"""Every error that crosses a boundary of the product.

KeelmanError
  InvalidArgument      a value the caller gave is not legal; names field, value and what is legal
  NotFound             the named thing does not exist
  AlreadyExists        the name is taken
  FailedPrecondition   legal, but not in the present state
  Conflict             the caller's etag, generation or session is older than the present one
  Unauthenticated      no or wrong credentials
  PermissionDenied     known caller, not allowed
  Exhausted            a limit is reached
  Unavailable          the other side cannot be reached or is not ready; trying again can help
  DeadlineExceeded     no answer in time
  Internal             a fault of ours
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with one field of a request."""

    field: str
    description: str


class KeelmanError(Exception):
    """Base of all errors that are reported to a caller.

    `reason` is for programs (upper case, stable), `metadata` holds the facts beside it, the message is for people.
    """

    reason = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[Violation] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)


class InvalidArgument(KeelmanError):
    """A value the caller gave is not legal."""

    reason = "INVALID_ARGUMENT"

    @classmethod
    def of(cls, field: str, value: object, legal: str) -> InvalidArgument:
        """Returns an error with the usual message: field, value and legal values."""
        text = f"{field}: {value!r} is not legal: {legal}"
        return cls(text, metadata={"field": field}, violations=[Violation(field, text)])

    @classmethod
    def of_all(cls, violations: Sequence[Violation]) -> InvalidArgument:
        """Returns an error with all violations in one message."""
        texts = list(dict.fromkeys(violation.description for violation in violations))
        message = texts[0] if len(texts) == 1 else f"{len(texts)} things are wrong: " + "; ".join(texts)
        return cls(message, violations=violations)


class NotFound(KeelmanError):
    """The named thing does not exist."""

    reason = "NOT_FOUND"


class AlreadyExists(KeelmanError):
    """The name is taken."""

    reason = "ALREADY_EXISTS"


class FailedPrecondition(KeelmanError):
    """The request is legal, but not in the present state."""

    reason = "FAILED_PRECONDITION"


class Conflict(KeelmanError):
    """The caller's etag, generation or session is older than the present one."""

    reason = "CONFLICT"


class Unauthenticated(KeelmanError):
    """No or wrong credentials."""

    reason = "UNAUTHENTICATED"


class PermissionDenied(KeelmanError):
    """A known caller that is not allowed to do this."""

    reason = "PERMISSION_DENIED"


class Exhausted(KeelmanError):
    """A limit is reached."""

    reason = "EXHAUSTED"


class Unavailable(KeelmanError):
    """The other side cannot be reached or is not ready; trying again can help."""

    reason = "UNAVAILABLE"


class DeadlineExceeded(KeelmanError):
    """No answer in time."""

    reason = "DEADLINE_EXCEEDED"


class Internal(KeelmanError):
    """A fault of ours."""

    reason = "INTERNAL"


_BY_HTTP_STATUS: dict[int, type[KeelmanError]] = {
    400: InvalidArgument,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    413: Exhausted,
    422: InvalidArgument,
    429: Exhausted,
    502: Unavailable,
    503: Unavailable,
    504: DeadlineExceeded,
}


def class_of_http_status(status: int) -> type[KeelmanError]:
    """Returns the class for an HTTP answer with this status, not a success: `Internal` for unlisted ones."""
    return _BY_HTTP_STATUS.get(status, Internal)
