"""Translates exceptions of Java's consumer into the client library's errors, so that the engine judges both alike."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from keelman.connectors.java.jvm import java_class

ERRORS = "org.apache.kafka.common.errors"
CONFIG = "org.apache.kafka.common.config.ConfigException"
CONSUMER = "org.apache.kafka.clients.consumer"
UNKNOWN_SERVER_ERROR = -1
NOT_TRUSTED = "certificate verify failed"
"""What the client library says of a handshake that will fail the next time too."""


def kafka_error(thrown: Any) -> KafkaError:
    """The error for an exception of Java's clients."""
    if isinstance(thrown, java_class(f"{ERRORS}.SslAuthenticationException")):
        return KafkaError(KafkaError._SSL, f"{NOT_TRUSTED}: {_text(thrown)}")
    if isinstance(thrown, java_class(f"{ERRORS}.AuthenticationException")):
        return KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, _text(thrown))
    if isinstance(thrown, java_class(f"{CONSUMER}.CommitFailedException")):
        return KafkaError(KafkaError.ILLEGAL_GENERATION, _text(thrown))
    code = int(java_class("org.apache.kafka.common.protocol.Errors").forException(thrown).code())
    if code != UNKNOWN_SERVER_ERROR:
        return KafkaError(code, _text(thrown))
    cause = thrown.getCause()
    config = java_class(CONFIG)
    if isinstance(thrown, config) or isinstance(cause, config):
        return KafkaError(KafkaError._INVALID_ARG, _text(thrown))
    return KafkaError(KafkaError._FAIL, _text(thrown))


def kafka_exception(thrown: Any) -> KafkaException:
    """The same to be raised."""
    return KafkaException(kafka_error(thrown))


def refuses(thrown: Any) -> bool:
    """Returns whether the brokers refuse our credentials, or are not trusted: another try gets the same result."""
    return isinstance(thrown, java_class(f"{ERRORS}.AuthenticationException"))


def _text(thrown: Any) -> str:
    """Its message with those of its causes."""
    said: list[str] = []
    cause = thrown
    while cause is not None and len(said) < 5:
        message = cause.getMessage()
        text = str(cause.getClass().getSimpleName() if message is None else message)
        if not any(text in before for before in said):
            said.append(text)
        cause = cause.getCause()
    return ": ".join(said)
