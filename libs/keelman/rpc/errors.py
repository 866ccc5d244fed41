"""Maps the error classes to gRPC status codes and back, so services raise and catch the same classes.

An error travels as status code, message, google.rpc.ErrorInfo(reason, domain, metadata) and, for field violations,
google.rpc.BadRequest (https://google.aip.dev/193).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from keelman.model import errors
from keelman.runtime.logs.redaction import REDACTOR

T = TypeVar("T")
DOMAIN = "keelman"
DETAILS_KEY = "grpc-status-details-bin"

# Clients refuse trailers over 8 KiB, and the whole error with them. The message is in the status line
# (percent-encoded), in the details and often in a violation.
MESSAGE_COST = 5_000
NOT_SERVED = "NOT_SERVED"
"""The reason when the other end does not know a method, because it is older."""

_CODES: dict[type[errors.KeelmanError], grpc.StatusCode] = {
    errors.InvalidArgument: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.FailedPrecondition: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Conflict: grpc.StatusCode.ABORTED,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
    errors.Exhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.Internal: grpc.StatusCode.INTERNAL,
}
_CLASSES = {code: cls for cls, code in _CODES.items()}


def code_name(error: errors.KeelmanError) -> str:
    """Returns the gRPC code of an error by name, e.g. "INVALID_ARGUMENT"."""
    return next((_CODES[c] for c in type(error).__mro__ if c in _CODES), grpc.StatusCode.INTERNAL).name


def status_name(context: Any) -> str:
    """Returns the code that a server's call has got by name; CANCELLED for a call that has got none."""
    code = context.code()
    return str(code.name) if isinstance(code, grpc.StatusCode) else grpc.StatusCode.CANCELLED.name


def is_refused(context: Any) -> bool:
    """Returns whether a server's call that has ended without an error has got a code other than OK."""
    code = context.code()
    return isinstance(code, grpc.StatusCode) and code is not grpc.StatusCode.OK


def class_of_code(name: str) -> type[errors.KeelmanError]:
    """Returns the error class for the name of a gRPC code."""
    return next((cls for code, cls in _CLASSES.items() if code.name == name), errors.Internal)


def to_status(error: errors.KeelmanError) -> grpc.Status:
    """Returns the gRPC status for this error; secrets that this process knows are hidden in its texts."""
    code = next((_CODES[c] for c in type(error).__mro__ if c in _CODES), grpc.StatusCode.INTERNAL)
    message = _fitting(REDACTOR.hide(error.message), MESSAGE_COST)
    details = []
    info = any_pb2.Any()
    info.Pack(error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata))
    details.append(info)
    violations = _fitting_violations(error.violations)
    if violations:
        bad = any_pb2.Any()
        bad.Pack(
            error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(field=v.field, description=v.description)
                    for v in violations
                ]
            )
        )
        details.append(bad)
    number = code_pb2.Code.Value(code.name)
    status: grpc.Status = rpc_status.to_status(status_pb2.Status(code=number, message=message, details=details))
    return status


def _fitting(text: str, cost: int) -> str:
    """Returns the text, cut so that its two copies on the wire take at most `cost` bytes."""
    if 4 * len(text) * 2 <= cost or len(quote(text)) + len(text.encode()) <= cost:
        return text
    size = 0
    for count, letter in enumerate(text):
        size += len(quote(letter)) + len(letter.encode())
        if size > cost - 8:
            return text[:count] + " ..."
    return text


def _fitting_violations(violations: Sequence[errors.Violation]) -> list[errors.Violation]:
    fitting_violations: list[errors.Violation] = []
    left = MESSAGE_COST // 2
    for violation in violations:
        text = _fitting(REDACTOR.hide(violation.description), MESSAGE_COST // 2)
        left -= len(text.encode()) + len(violation.field.encode())
        if fitting_violations and left < 0:
            break
        fitting_violations.append(errors.Violation(violation.field, text))
    return fitting_violations


def from_rpc_error(error: grpc.aio.AioRpcError, *, peer: str = "") -> errors.KeelmanError:
    """Returns the error of our classes for a status; `peer` is named if it did not answer."""
    if peer and nobody_answered(error):
        return unreachable(error, peer)
    if was_cut(error):
        text = f"{peer or 'the other side'} ended the call while a request was being sent"
        return errors.Unavailable(text, reason="CALL_CUT", metadata={"peer": peer})
    cls = _CLASSES.get(
        error.code(), errors.Unavailable if error.code() is grpc.StatusCode.CANCELLED else errors.Internal
    )
    reason, metadata, violations = None, {}, []
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        reason = NOT_SERVED
    with contextlib.suppress(ValueError):
        status = rpc_status.from_call(error)
        for detail in status.details if status else ():
            info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
            if detail.Unpack(info):
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                violations = [errors.Violation(v.field, v.description) for v in bad.field_violations]
    return cls(error.details() or error.code().name, reason=reason, metadata=metadata, violations=violations)


def nobody_answered(error: grpc.aio.AioRpcError) -> bool:
    """Returns True if the status was created on this side of the wire: our own services send details with every
    UNAVAILABLE."""
    if error.code() is not grpc.StatusCode.UNAVAILABLE:
        return False
    return all(key != DETAILS_KEY for key, _ in error.trailing_metadata() or ())


def was_cut(error: grpc.aio.AioRpcError) -> bool:
    """Returns True if a write to a stream met the end of its call: grpc then forgets the answer, if there was one."""
    return error.code() is grpc.StatusCode.INTERNAL and error.details() == "Internal error from Core"


def unreachable(error: grpc.aio.AioRpcError, peer: str) -> errors.Unavailable:
    """Returns the error for a peer that cannot be reached; `peer` is e.g. "the state service at 127.0.0.1:7410"."""
    cause = (error.details() or "no answer").rpartition("Failed to connect to remote host: ")[2]
    return errors.Unavailable(f"{peer} cannot be reached: {cause}", reason="UNREACHABLE", metadata={"peer": peer})


async def ended_call(call: Any, otherwise: str) -> errors.KeelmanError:
    """Returns the error of a call that ended before a write; `otherwise` is the text if the call has no error."""
    code = await call.code()
    if code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        return errors.Unavailable(otherwise)
    said = await call.initial_metadata(), await call.trailing_metadata()
    return from_rpc_error(grpc.aio.AioRpcError(code, *said, details=await call.details()))


@contextlib.contextmanager
def translated(peer: str = "") -> Iterator[None]:
    """Raises the error classes of keelman.model.errors for gRPC errors inside the block."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, peer=peer) from None


async def translated_stream(stream: AsyncIterable[T], *, peer: str = "") -> AsyncIterator[T]:
    """Passes a response stream on, with its errors translated."""
    with translated(peer):
        async for message in stream:
            yield message
