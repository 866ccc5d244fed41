"""Errors of connectors and converters, with the Java names that Connect's clients know from traces."""

from __future__ import annotations


class ConnectError(Exception):
    """A connector or converter cannot continue; a new ticket does not help, a change of configuration or data may."""

    java_name = "org.apache.kafka.connect.errors.ConnectException"
    tolerable = True
    """Whether the current record can be at fault: `errors.tolerance` skips no record for any other error."""
    java_trace = ""
    """For an error thrown by a Java class, the trace as Java prints it."""


class DataError(ConnectError):
    """A value does not fit its schema, or the bytes do not fit the converter's format."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class SerializationError(ConnectError):
    """The bytes hold no data of their format; the cause of a DataError, which names the data to be read."""

    java_name = "org.apache.kafka.common.errors.SerializationException"


class RetriableConnectError(ConnectError):
    """The other system is away or busy; a new copy run may succeed."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class ConfigValueError(ConnectError):
    """A configuration value is not legal; the message is Connect's own text."""

    java_name = "org.apache.kafka.common.config.ConfigException"
    tolerable = False

    def __init__(self, key: str, value: object, why: str = "", *, whole: str | None = None) -> None:
        text = f"Invalid value {'null' if value is None else value} for configuration {key}"
        super().__init__(whole if whole is not None else f"{text}: {why}" if why else text)
        self.key = key
        self.value = value


def in_one_line(error: ConnectError) -> str:
    """Returns the error's message for people, with the fault in the bytes, which Connect leaves to the trace."""
    cause = error.__cause__
    text = f"{error}{cause}" if isinstance(cause, SerializationError) else str(error)
    return " ".join(text.split())
