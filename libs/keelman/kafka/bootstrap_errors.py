"""Records why the first contact with brokers failed: only the connection knows the cause.

A client tries one broker after the other and only raises that none answered. This module keeps the error of each
broker, and raises a separate error for failures that a new try would meet again. It keeps the connections, too: one
that waits for its first answer is referenced nowhere else and would stay open when its client is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from keelman.kafka.security import tls_sasl as security
from keelman.kafka.security.tokens import Tokens
from keelman.model.errors import Unauthenticated, Unavailable
from keelman.runtime.own_thread import in_thread
from keelman.runtime.tls.failures import not_trusted, tls_error, words

_LOOK_SECONDS = 0.1
_UNHEARD = "a connection was made, and the first question was not answered"


@dataclass(slots=True)
class _Contact:
    """The first contact of one client, until it succeeds; tasks that the library starts meanwhile keep it for ever."""

    said: dict[str, BaseException] = field(default_factory=dict)
    made: list[Any] = field(default_factory=list)
    over: bool = False


_contact: ContextVar[_Contact | None] = ContextVar("contact", default=None)


class NoneAnswered(KafkaConnectionError):  # type: ignore[misc]
    """None of the bootstrap servers answered the first request."""


class NoToken(KafkaConnectionError):  # type: ignore[misc]
    """The token endpoint does not answer."""


class TokenRefused(SaslAuthenticationFailed):  # type: ignore[misc]
    """The token endpoint refuses to give a token."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Provides tokens to the client library's connections."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._extensions: dict[str, str] = {}

    async def token(self) -> str:
        """Returns a valid token; waits a while for the first one. Raises TokenRefused, NoToken."""
        loop = asyncio.get_running_loop()
        end = loop.time() + (0 if self._tokens.any else self._tokens.patience)
        while True:
            try:
                token = await in_thread(self._tokens.current)[1]
                break
            except Unauthenticated as error:
                raise TokenRefused(error.message) from None
            except Unavailable as error:
                if loop.time() >= end:
                    raise NoToken(error.message) from None
            await asyncio.sleep(_LOOK_SECONDS)
        self._extensions = dict(token.extensions)
        return token.text

    def extensions(self) -> dict[str, str]:
        """Returns the extensions of the last token."""
        return self._extensions


async def connect(connection: AIOKafkaConnection) -> None:
    """Connects; records the outcome if this is a client's first contact. Raises KafkaError and OSError."""
    first = _contact.get()
    if first is None or first.over:
        await connection.connect()
        return
    address = f"{connection.host}:{connection.port}"
    try:
        await connection.connect()
    except (KafkaError, OSError) as error:
        first.said[address] = error
        raise
    first.said.pop(address, None)
    first.made.append(connection)


@contextlib.asynccontextmanager
async def bootstrap_errors(properties: Mapping[str, str]) -> AsyncIterator[None]:
    """Wraps the start of one client. Raises Unauthenticated if a broker refused the client or was not trusted,
    otherwise KafkaConnectionError with the first broker's error. Closes the connections if the block fails."""
    first = _Contact()
    said, token = first.said, _contact.set(first)
    try:
        yield
        first.made.clear()
    except (KafkaError, OSError) as error:
        for address, failure in said.items():
            if isinstance(failure, TokenRefused):  # raised before any broker is contacted
                raise Unauthenticated(text_of(failure), reason="BROKER_REFUSED") from None
            lasting = _lasting(failure, properties)
            if lasting:
                raise Unauthenticated(f"{address}: {lasting}", reason="BROKER_REFUSED") from None
        for address, failure in said.items():
            if isinstance(failure, NoToken):
                raise NoToken(text_of(failure)) from None
            raise KafkaConnectionError(f"{address}: {_passing(failure, properties)}") from None
        unheard = isinstance(error, NoneAnswered)
        text = _hinted(_UNHEARD, properties) if unheard else _passing(error, properties)
        raise KafkaConnectionError(text) from None
    finally:
        _contact.reset(token)
        first.over = True
        for connection in first.made:
            connection.close()


def text_of(error: BaseException) -> str:
    """Returns an error as one line, without the library's own name for it."""
    text = str(error.args[0]) if isinstance(error, KafkaError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__


def _lasting(error: BaseException, properties: Mapping[str, str]) -> str:
    """Returns the reason if the same properties will fail again; otherwise an empty string."""
    if isinstance(error, UnsupportedSaslMechanismError):
        return "authentication failed: the broker does not know this sasl.mechanism on this listener"
    if isinstance(error, IllegalSaslStateError):
        return "authentication failed: this listener does not speak SASL (see security.protocol)"
    if isinstance(error, SaslAuthenticationFailed):
        return f"authentication failed: {text_of(error)} (see sasl.jaas.config)"
    failure = tls_error(error)
    return "" if failure is None else _tls_problem(failure, properties)


def _tls_problem(error: ssl.SSLError, properties: Mapping[str, str]) -> str:
    problem = not_trusted(error, "the broker's")
    reason = error.reason or ""
    if problem or not reason or "EOF" in reason:
        return problem
    if "CERTIFICATE" not in reason:
        return f"TLS failed: {words(reason)} (see security.protocol)"
    ends = security.own_certificate_ends(properties)
    if ends is None:
        return "the broker requires a client certificate, and ssl.keystore.location is not set"
    over = f", it ended on {ends:%Y-%m-%d at %H:%M} UTC" if ends < datetime.now(UTC) else ""
    return f"the broker refuses the client certificate: {words(reason)}{over} (see ssl.keystore.location)"


def _passing(error: BaseException, properties: Mapping[str, str]) -> str:
    if not isinstance(error, KafkaConnectionError | ConnectionResetError | ssl.SSLError):
        return text_of(error)
    return _hinted(text_of(error), properties)


def _hinted(text: str, properties: Mapping[str, str]) -> str:
    spoken = properties.get("security.protocol") or "PLAINTEXT"
    return f"{text} (perhaps the listener does not speak {spoken}, see security.protocol)"
