"""Translates a Java exception into an error of Connect's with the Java class, its message and its stack trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keelman.connect.errors import ConfigValueError, ConnectError, DataError, RetriableConnectError
from keelman.connectors.java.jvm import java_class, jpype

LONGEST_TRACE = 60_000
CONNECT = "org.apache.kafka.connect.errors"
RETRIABLE = (f"{CONNECT}.RetriableException", "org.apache.kafka.common.errors.RetriableException")
CONFIG = "org.apache.kafka.common.config.ConfigException"


def connect_error(error: Any, what: str = "") -> ConnectError:
    """The error for something that was thrown; `what` was being done, e.g. `com.acme.Source.poll`, and may be empty."""
    thrown: Any = error
    said = thrown.getMessage()
    text = f"{what}: {thrown.toString()}" if what else str(thrown.toString() if said is None else said)
    failure: ConnectError
    if isinstance(error, _class(CONFIG)):
        failure = ConfigValueError("", None, whole=text)
    elif isinstance(error, tuple(_class(name) for name in RETRIABLE)):
        failure = RetriableConnectError(text)
    elif isinstance(error, _class(f"{CONNECT}.DataException")):
        failure = DataError(text)
    else:
        failure = ConnectError(text)
    failure.java_name = str(thrown.getClass().getName())
    failure.java_trace = stack_trace(error)
    return failure


def task_error(error: BaseException) -> Exception:
    """The error for anything that ended a task."""
    if isinstance(error, jpype().JException):
        return connect_error(error)
    return error if isinstance(error, Exception) else ConnectError(repr(error))


def stack_trace(error: BaseException) -> str:
    """The whole trace as Java prints it, causes included."""
    writer = _class("java.io.StringWriter")()
    thrown: Any = error
    thrown.printStackTrace(_class("java.io.PrintWriter")(writer, True))
    return str(writer.toString())[:LONGEST_TRACE].rstrip()


@contextmanager
def translated(what: str = "") -> Iterator[None]:
    """Raises ConnectError for what Java throws within."""
    try:
        yield
    except jpype().JException as error:
        raise connect_error(error, what) from None


def _class(name: str) -> Any:
    return java_class(name)
