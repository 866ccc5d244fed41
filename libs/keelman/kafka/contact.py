"""The first contact with brokers: why it failed, told by the one thing that knows, the connection.

The client library tries one broker after the other, logs what each said and raises that none answered. Here what they
said is kept, and what a new try would meet again becomes an error of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any

import aiokafka.client
import aiokafka.conn
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import OAuthAuthenticator, create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from keelman.kafka.oauth import Tokens
from keelman.model.errors import Unauthenticated, Unavailable

_NAME_CODES = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
_said: ContextVar[dict[str, BaseException] | None] = ContextVar("said", default=None)


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens for the client library's connections."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._extensions: dict[str, str] = {}

    async def token(self) -> str:
        """One that is good now. Raises SaslAuthenticationFailed, KafkaConnectionError."""
        try:
            found = await asyncio.to_thread(self._tokens.current)
        except Unauthenticated as error:
            raise SaslAuthenticationFailed(error.message) from None
        except Unavailable as error:
            raise KafkaConnectionError(error.message) from None
        self._extensions = dict(found.extensions)
        return found.text

    def extensions(self) -> dict[str, str]:
        """Of the last token."""
        return self._extensions


class _Heard(OAuthAuthenticator):  # type: ignore[misc]
    """A refused token is answered with a reason (RFC 7628 section 3.2.3), which the library takes for consent."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        if payload:
            raise SaslAuthenticationFailed(f"the token is refused: {payload.decode(errors='replace')}")
        return await super().step(payload)  # type: ignore[no-any-return]


async def _connected(host: str, port: int, **arguments: Any) -> Any:
    said = _said.get()
    try:
        made = await create_conn(host, port, **arguments)
    except (KafkaError, OSError, TimeoutError) as error:
        if said is not None:
            said[f"{host}:{port}"] = error
        raise
    if said is not None:
        said.pop(f"{host}:{port}", None)
    return made


aiokafka.client.create_conn = _connected
aiokafka.conn.OAuthAuthenticator = _Heard


@contextlib.asynccontextmanager
async def contact(properties: Mapping[str, str]) -> AsyncIterator[None]:
    """Around the start of one client. Its failure becomes Unauthenticated when a broker refused us or was not trusted,
    and KafkaConnectionError with what the first one said otherwise."""
    said: dict[str, BaseException] = {}
    token = _said.set(said)
    try:
        yield
    except (KafkaError, OSError) as error:
        for address, one in said.items():
            lasting = _lasting(one)
            if lasting:
                raise Unauthenticated(f"{address}: {lasting}", reason="BROKER_REFUSED") from None
        for address, one in said.items():
            raise KafkaConnectionError(f"{address}: {_passing(one, properties)}") from None
        raise KafkaConnectionError(_passing(error, properties)) from None
    finally:
        _said.reset(token)


def text_of(error: BaseException) -> str:
    """An error in one line, without the library's own name for it."""
    text = str(error.args[0]) if isinstance(error, KafkaError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__


def _lasting(error: BaseException) -> str:
    """What is wrong, when the same properties will meet it again; else empty."""
    if isinstance(error, UnsupportedSaslMechanismError):
        return "authentication failed: the broker does not know this sasl.mechanism on this listener"
    if isinstance(error, IllegalSaslStateError):
        return "authentication failed: this listener does not speak SASL (see security.protocol)"
    if isinstance(error, SaslAuthenticationFailed):
        return f"authentication failed: {text_of(error)}"
    found = _tls_error(error)
    return "" if found is None else _tls_trouble(found)


def _tls_trouble(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NAME_CODES:
            why = f"the broker's certificate is for another host: {error.verify_message}"
            return f"{why} (an empty ssl.endpoint.identification.algorithm accepts it)"
        return f"the broker's certificate is not trusted: {error.verify_message} (see ssl.truststore.location)"
    reason = error.reason or ""
    if "CERTIFICATE" in reason:
        return f"the broker does not take our certificate: {_words(reason)} (see ssl.keystore.location)"
    if reason and "EOF" not in reason:
        return f"TLS failed: {_words(reason)} (see security.protocol)"
    return ""


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The TLS library's own error behind a connection that was closed."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()


def _passing(error: BaseException, properties: Mapping[str, str]) -> str:
    if not isinstance(error, KafkaConnectionError | ConnectionResetError | ssl.SSLError):
        return text_of(error)
    spoken = properties.get("security.protocol") or "PLAINTEXT"
    return f"{text_of(error)} (perhaps the listener does not speak {spoken}, see security.protocol)"
