"""Replaces connections to brokers before the end of their sessions, so that no request is lost, and reports why a
broker refused a token.

A broker with `connections.max.reauth.ms`, or a token that ends, closes a connection at the first request after its
session's end (KIP-368). Java's clients authenticate again on the connection. Here it retires instead: it takes no new
requests, so the next one uses a new connection, and it closes after its last answer.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Callable
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason, OAuthAuthenticator
from aiokafka.errors import SaslAuthenticationFailed

PARTS = (0.85, 0.95)
"""Java's: the part of its session after which a connection is replaced; random, so that not all are at once."""
MIN_SECONDS = 1.0  # a shorter session, the last of a token that is not renewed, is left to its end


class TokenLogin(OAuthAuthenticator):  # type: ignore[misc]
    """Raises the reason for a refused token (RFC 7628 section 3.2.3), which the library takes for consent."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Returns the next message to the broker, None after the last. Raises SaslAuthenticationFailed with why."""
        if payload:
            raise SaslAuthenticationFailed(f"the token is refused: {payload.decode(errors='replace')}")
        return await super().step(payload)  # type: ignore[no-any-return]


class RenewedConnection(AIOKafkaConnection):  # type: ignore[misc]
    """The connection of keelman's clients (`broker_client`)."""

    _retired = False
    _retirement: asyncio.TimerHandle | None = None
    _session_ms = 0

    def connected(self) -> bool:
        """Whether the connection may be used."""
        return not self._retired and bool(super().connected())

    def close(self, reason: CloseReason | None = None, exc: BaseException | None = None) -> Any:
        """Closes the connection at once."""
        if self._retirement is not None:
            self._retirement.cancel()
        return super().close(reason, exc)

    def authenticator_oauth(self) -> TokenLogin:
        """Returns the client's login with a token."""
        return TokenLogin(sasl_oauth_token_provider=self._sasl_oauth_token_provider)

    async def _do_sasl_handshake(self) -> None:
        self.send = self._send
        try:
            await super()._do_sasl_handshake()
        finally:
            del self.send
        seconds = self._session_ms / 1000 * random.uniform(*PARTS)
        if seconds > MIN_SECONDS:
            self._retirement = self._loop.call_later(seconds, _retire, weakref.ref(self))

    async def _send(self, request: Any, expect_response: bool = True) -> Any:
        """Sends one of the requests of a login; the last answer has the session's lifetime."""
        answer = await super().send(request, expect_response)
        self._session_ms = getattr(answer, "session_lifetime_ms", 0)
        return answer

    def retire(self) -> None:
        """Takes no new requests, and closes after its last answer."""
        self._retired = True
        waiting = [answer for _, _, answer in self._requests if not answer.done()]
        if waiting:
            waiting[-1].add_done_callback(lambda _: self.retire())
        else:
            self.close(CloseReason.IDLE_DROP)


def _retire(connection: Callable[[], RenewedConnection | None]) -> None:
    present = connection()
    if present is not None:
        present.retire()
