"""Judges the error that ends a copy run: finds its reason for the report, and whether a new ticket can help."""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from keelman.connect.bad_records.tolerance import RecordRefused, RecordTooLarge
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.kafka.batches.producer import ProduceFailure
from keelman.model.errors import InvalidArgument, KeelmanError, NotFound, Unauthenticated, Unavailable
from keelman.runtime.error_text import error_text

CONFIG_INVALID, BROKER_REFUSED, NOT_ALLOWED = "CONFIG_INVALID", "BROKER_REFUSED", "NOT_ALLOWED"
MAX_FRAMES = 100


class RunFailure(Exception):
    """Ends the run. `reason` is for programs; `retriable` means that a new ticket can help."""

    def __init__(self, reason: str, message: str, *, retriable: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.retriable = retriable


class TopicRefused(ConnectError):
    """The brokers refuse to create a target topic, or to add a target partition to it."""


def refuses_topic(error: BaseException) -> bool:
    """Returns whether an error concerns one topic's target alone, so that records for other topics may be written."""
    if isinstance(error, RecordRefused):
        return isinstance(error.failure.error, RecordTooLarge)
    if isinstance(error, ProduceFailure):
        return bool(error.code == KafkaError.TOPIC_AUTHORIZATION_FAILED)
    return isinstance(error, TopicRefused) or (isinstance(error, RunFailure) and error.reason == NOT_ALLOWED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a failed run, for its report."""

    reason: str
    message: str
    trace: str
    retriable: bool


_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        90,  # PRODUCER_FENCED, which the client library has no name for
    }
)

# Errors of the configuration itself: an unchanged configuration gets them again.
_CONFIG = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError._INVALID_ARG,
    }
)

_SHORTER = (
    "choose a shorter transaction.boundary.interval.ms, keelman.commit.interval.ms or producer.override."
    "transaction.timeout.ms, or let the brokers allow more"
)

# A broker's refusal of our credentials.
_REFUSALS = frozenset({KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM})
# The client library's texts for that, and for a broker that it does not trust. It uses the same two codes for a
# connection that broke in the middle of a login and for a token server that is away.
_REFUSED = ("SASL authentication error: ", "Unsupported SASL mechanism", "certificate verify failed")
_TORN = ("SaslAuthenticateRequest failed: ",)
# A broker's refusal of our certificate; with TLS 1.3 it comes when the connection is already made, and the client
# library reports it with the code of lost connections.
_NOT_TAKEN = re.compile(r"SSL alert number (4[2-68]|116)\b")

_OF_TLS = frozenset({KafkaError._SSL, KafkaError._TRANSPORT})

# A broker knows us, and does not allow the request until we get the permission.
_FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

# Errors that the same configuration will get again. All others may pass: a broker that starts, a leader that moves.
_LASTING = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        76,  # UNSUPPORTED_COMPRESSION_TYPE, which the client library has no name for
        KafkaError.OFFSET_OUT_OF_RANGE,  # reported only where `auto.offset.reset` is none
        KafkaError._INVALID_DIFFERENT_RECORD,  # a record of the same batch as one that the broker refused
        KafkaError.POLICY_VIOLATION,
        KafkaError._AUTHENTICATION,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError._SSL,
    }
)


def judge_kafka(error: KafkaError) -> tuple[str, bool]:
    """Returns reason and retriable of a client's error."""
    text = error.str() if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) else ""
    if any(said in text for said in _REFUSED) and not any(said in text for said in _TORN):
        return BROKER_REFUSED, False
    if error.code() in _OF_TLS and _NOT_TAKEN.search(error.str()):
        return BROKER_REFUSED, False
    return judge_code(error.code())


def judge_code(code: int) -> tuple[str, bool]:
    """Returns reason and retriable of an error, by Kafka's number or the client library's negative number."""
    if code in _FENCED:
        return "FENCED", True
    if code in _CONFIG:
        return CONFIG_INVALID, False
    if code in _REFUSALS:
        return BROKER_REFUSED, False
    if code in _FORBIDDEN:
        return NOT_ALLOWED, False
    if code in _LASTING or code == KafkaError.UNKNOWN:  # UNKNOWN_SERVER_ERROR: a broker was there, and failed
        return "TASK_FAILED", code not in _LASTING
    return "BROKER_LOST", True


def judge(error: BaseException) -> Verdict:
    """Returns the verdict to report on an error that ended a run."""
    if isinstance(error, SystemError) and error.__cause__ is not None:
        # The client raises a fatal error, then calls back while it is still set; so Python wraps it in a SystemError.
        error = error.__cause__.with_traceback(error.__traceback__)
    message = " ".join(error_text(error).split()) or type(error).__name__
    if isinstance(error, RunFailure):
        reason, retriable = error.reason, error.retriable
    elif isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        reason, retriable = judge_kafka(error.args[0])
        message = f"{error.args[0].name()}: {error.args[0].str()}"
    elif isinstance(error, ProduceFailure):
        reason, retriable = judge_code(error.code)
    elif isinstance(error, Unavailable):
        reason, retriable = "BROKER_LOST", True
    elif isinstance(error, ConfigValueError | InvalidArgument):
        reason, retriable = CONFIG_INVALID, False
    elif isinstance(error, NotFound | Unauthenticated):
        reason, retriable = error.reason, False
    else:
        passing = error.retriable if isinstance(error, RecordRefused) else isinstance(error, RetriableConnectError)
        reason, retriable = "TASK_FAILED", passing
    if isinstance(error, ProduceFailure) and error.code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        message = f"{message}: {_SHORTER}"
    return Verdict(reason, message, trace(error, message), retriable)


def raised() -> BaseException:
    """Returns the exception that a bare `except` has caught; wraps the client library's bare error in an exception."""
    error: Any = sys.exc_info()[1]
    return KafkaException(error) if isinstance(error, KafkaError) else error or RuntimeError("nothing was raised")


def release(error: BaseException | None) -> None:
    """Empties the frames that an error came through.

    The client library keeps a reference to a fatal error for ever; that would keep a producer that a frame refers to,
    its threads and its connections.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def trace(error: BaseException, message: str) -> str:
    """Returns the error in the form of a Java trace, as Connect's clients show it: class and message, then frames."""
    if isinstance(error, RecordRefused):
        return _of_record(error)
    if isinstance(error, ConnectError) and error.java_trace:
        return error.java_trace
    lines = [f"{java_name(error)}: {message}"]
    lines += _frames(error)
    if error.__cause__ is not None:
        cause = " ".join(error_text(error.__cause__).split())
        lines.append(f"Caused by: {java_name(error.__cause__)}: {cause}")
    return "\n".join(lines)


def _of_record(error: RecordRefused) -> str:
    """Returns the trace of a bad record: Connect's first line; then one line with the record, the step and the
    reason."""
    failure = error.failure
    lines = [f"{error.java_name}: {error.head}", f"Caused by: {failure.java_name}: {failure}"]
    return "\n".join([*lines, *_frames(failure.error)])


def _frames(error: BaseException) -> list[str]:
    """Returns an error's frames, the innermost first, for endless recursion only the last calls. Reads no source files,
    since there may be many errors."""
    codes = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    codes = codes[-MAX_FRAMES:]
    return [f"\tat {code.co_name}({code.co_filename.rpartition('/')[2]}:{line})" for code, line in reversed(codes)]


def java_name(error: BaseException) -> str:
    """Returns the name of Connect's Java class for an error, or else of our own class."""
    if isinstance(error, ConnectError):
        return error.java_name
    if isinstance(error, RunFailure):
        return "org.apache.kafka.connect.errors.ConnectException"
    if isinstance(error, (KafkaException, ProduceFailure)):
        return "org.apache.kafka.common.KafkaException"
    if isinstance(error, KeelmanError):
        return "org.apache.kafka.connect.errors.ConnectException"
    return f"{type(error).__module__}.{type(error).__qualname__}"
