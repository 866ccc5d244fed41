"""Errors in the clients' form: a status, a type in a header, and a message in the body."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keelman.model import errors

STATUS: Mapping[str, int] = {
    "BadRequestException": 400,
    "UnauthorizedException": 401,
    "ForbiddenException": 403,
    "NotFoundException": 404,
    "ConflictException": 409,
    "TooManyRequestsException": 429,
    "InternalServerErrorException": 500,
    "ServiceUnavailableException": 503,
}
MEMBERS: Mapping[str, str] = {
    "spec.connector": "connectorName",
    "spec.config": "connectorConfiguration",
    "spec.capacity": "capacity",
    "spec.external.bootstrap_servers": "kafkaCluster.apacheKafkaCluster.bootstrapServers",
    "spec.external": "kafkaCluster",
    "spec.plugins": "plugins",
    "spec.worker_configuration": "workerConfiguration",
    "spec.properties": "workerConfiguration",
    "spec.log_delivery": "logDelivery",
    "spec.description": "connectorDescription",
    "spec.extra": "tags",
    "version": "currentVersion",
    "content": "propertiesFileContent",
    "source.bucket": "location.s3Location.bucketArn",
    "source.key": "location.s3Location.fileKey",
    "source.version": "location.s3Location.objectVersion",
    "source": "location",
}
"""The members of requests by the corresponding fields of our resources."""
TAKEN = "A resource with this name already exists."
LIMIT = "Limit exceeded. Resource limit reached"
IDENTICAL = (
    "The specified parameter value is identical to the current value for the connector. "
    "Specify a different value, then try again."
)
REASONS: Mapping[str, str] = {
    "HEALTH_CHECK_OF_PAUSED": (
        "Invalid parameter skipHealthValidation: It must be true for a connector that is PAUSED: its health cannot be "
        "checked."
    ),
    "OPERATION_UNDER_WAY": "Another operation on the resource is in progress: wait for its end, then try again.",
    "IN_USE": "The resource is in use by a connector: delete that first, or give it another one.",
    "QUOTA": LIMIT,
    "NO_BUCKETS": (
        "Invalid parameter logDelivery.workerLogDelivery.s3: This service has no buckets: ask its operator for "
        "state.buckets."
    ),
}
"""Messages of errors by reason, in place of our messages with terms that these clients do not know."""
_OURS = re.compile(r"(?:dedicated connector|worker configuration|plugin import|worker cluster) 'mc-[0-9a-f]{32}'")
_FIELD = re.compile(r"^([A-Za-z_][\w.\-\[\]]*): ")


class WireError(Exception):
    """An error as the answer of this API."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    @property
    def status(self) -> int:
        """The status of the answer."""
        return STATUS[self.kind]


def bad(message: str) -> WireError:
    """Returns 400: the request is not legal."""
    return WireError("BadRequestException", message)


def bad_member(member: str, sentence: str) -> WireError:
    """Returns 400: a member is not legal."""
    return bad(f"Invalid parameter {member}: {sentence}")


def not_found(message: str) -> WireError:
    """Returns 404."""
    return WireError("NotFoundException", message)


def conflict(message: str) -> WireError:
    """Returns 409, which only three creates, pause, resume and tags declare."""
    return WireError("ConflictException", message)


def taken(member: str) -> WireError:
    """Returns 409: another resource has this name."""
    return conflict(f"Invalid parameter {member}: {TAKEN}")


def error_of(error: errors.KeelmanError, *, conflicts: bool = False) -> WireError:
    """Returns this API's error for an error of ours. `conflicts`: the operation declares 409."""
    match error:
        case errors.InvalidArgument():
            wire_error = bad(worded(error))
        case errors.NotFound():
            wire_error = not_found(error.message)
        case errors.FailedPrecondition():
            wire_error = bad(worded(error))
        case errors.AlreadyExists() | errors.Conflict():
            wire_error = conflict(worded(error)) if conflicts else bad(worded(error))
        case errors.PermissionDenied():
            wire_error = WireError("ForbiddenException", error.message)
        case errors.Unauthenticated():
            wire_error = WireError("UnauthorizedException", error.message)
        case errors.Exhausted():
            wire_error = WireError("TooManyRequestsException", worded(error))
        case errors.Unavailable() | errors.DeadlineExceeded():
            wire_error = WireError("ServiceUnavailableException", error.message)
        case _:
            wire_error = WireError("InternalServerErrorException", error.message)
    return wire_error


def worded(error: errors.KeelmanError) -> str:
    """Returns the message of an error in this API's words, whose members and resources have other names than ours."""
    if error.reason in REASONS:
        return REASONS[error.reason]
    text = _OURS.sub("the resource", error.message)
    match = _FIELD.match(text)
    if match is None:
        return text[:1].upper() + text[1:]
    field, rest = match[1], text[match.end() :]
    for ours, member in MEMBERS.items():
        if field == ours or field.startswith(f"{ours}."):
            return f"Invalid parameter {member}{field.removeprefix(ours)}: {rest}"
    return f"Invalid parameter {field}: {rest}"
