"""What an exception of Java's becomes: an error of Connect's kind with Java's class, its message and its trace."""

from __future__ import annotations

from typing import Any

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connectors.java.jvm import java_class, jpype

RETRIABLE = ("org.apache.kafka.connect.errors.RetriableException", "org.apache.kafka.common.errors.RetriableException")


def connect_error(error: Any) -> ConnectError:
    """Of a Java exception."""
    retriable = isinstance(error, tuple(java_class(name) for name in RETRIABLE))
    message = error.getMessage()
    made = (RetriableConnectError if retriable else ConnectError)(str(error.toString() if message is None else message))
    made.java_name = str(error.getClass().getName())
    return made


def task_error(error: BaseException) -> Exception:
    """Of anything that ended a task."""
    if isinstance(error, jpype().JException):
        return connect_error(error)
    return error if isinstance(error, Exception) else ConnectError(repr(error))
