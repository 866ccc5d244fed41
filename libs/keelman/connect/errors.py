"""Errors of connectors and converters, with the Java names that Connect's clients know from traces."""

from __future__ import annotations


class ConnectError(Exception):
    """A connector or converter cannot go on; a new ticket does not help, a change of configuration or data may."""

    java_name = "org.apache.kafka.connect.errors.ConnectException"
    tolerable = True
    """Whether it can be a fault of the record at hand: for what is not, `errors.tolerance` passes over no record."""
    java_trace = ""
    """Where it was thrown, of an error that a Java class has thrown: the trace as Java prints it."""


class DataError(ConnectError):
    """A value does not fit its schema, or bytes do not hold what the converter expects."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class SerializationError(ConnectError):
    """The bytes hold no data of their format; the cause of a DataError, which names what was to be read."""

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
    """What a person reads: its text, and what was wrong with the bytes, which Connect leaves to the trace."""
    cause = error.__cause__
    text = f"{error}{cause}" if isinstance(cause, SerializationError) else str(error)
    return " ".join(text.split())
