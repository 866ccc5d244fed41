"""One table maps the error classes to gRPC status codes and back, so services raise and catch the same classes.

An error travels as status code, message, google.rpc.ErrorInfo(reason, domain, metadata) and, for field violations,
google.rpc.BadRequest (https://google.aip.dev/193).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from keelman.model import errors

T = TypeVar("T")
DOMAIN = "keelman"

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


def to_status(error: errors.KeelmanError) -> grpc.Status:
    """The gRPC status that carries this error."""
    code = next((_CODES[c] for c in type(error).__mro__ if c in _CODES), grpc.StatusCode.INTERNAL)
    details = []
    info = any_pb2.Any()
    info.Pack(error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata))
    details.append(info)
    if error.violations:
        bad = any_pb2.Any()
        bad.Pack(
            error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(field=v.field, description=v.description)
                    for v in error.violations
                ]
            )
        )
        details.append(bad)
    number = code_pb2.Code.Value(code.name)
    status: grpc.Status = rpc_status.to_status(status_pb2.Status(code=number, message=error.message, details=details))
    return status


def from_rpc_error(error: grpc.aio.AioRpcError) -> errors.KeelmanError:
    """The error class that a status stands for."""
    cls = _CLASSES.get(
        error.code(), errors.Unavailable if error.code() is grpc.StatusCode.CANCELLED else errors.Internal
    )
    reason, metadata, violations = None, {}, []
    with contextlib.suppress(ValueError):
        status = rpc_status.from_call(error)
        for detail in status.details if status else ():
            info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
            if detail.Unpack(info):
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                violations = [errors.Violation(v.field, v.description) for v in bad.field_violations]
    return cls(error.details() or error.code().name, reason=reason, metadata=metadata, violations=violations)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises the error classes of keelman.model.errors for gRPC errors inside the block."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


async def translated_stream(stream: AsyncIterator[T]) -> AsyncIterator[T]:
    """Passes a response stream on, with its errors translated."""
    with translated():
        async for message in stream:
            yield message
