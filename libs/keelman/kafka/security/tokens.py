"""Keeps a client's token for SASL OAUTHBEARER while it is valid, renews it before its end, and logs a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.model.errors import Unauthenticated, Unavailable
from keelman.runtime.logs.logging import get_logger

log = get_logger()


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is sent, its principal, and its life in seconds since 1970."""

    text: str = field(repr=False)
    principal: str
    begins: float
    ends: float
    extensions: Mapping[str, str] = field(default_factory=dict)


class Tokens:
    """Provides a valid token; for any thread, and for all clients of a process with the same properties.

    After a failure the server is not called for a while, which doubles each time: clients that reconnect again and
    again would call it as often, and many servers lock such clients out.
    """

    def __init__(
        self,
        get: Callable[[], Token],
        factor: float,
        retry_seconds: tuple[float, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`factor` is the part of its life after which a token is renewed; `retry_seconds` the first and the longest
        time until the next try after a failure."""
        self._get = get
        self._factor = factor
        self._first, self.patience = retry_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._failure: Unauthenticated | Unavailable | None = None
        self._logged = ""
        self._wait = self._first
        self._again = 0.0

    @property
    def any(self) -> bool:
        """Whether there ever was a token."""
        return self._token is not None

    def current(self) -> Token:
        """Returns a valid token; blocks while it gets a new one.

        Raises Unauthenticated when no token was ever given, Unavailable when there is none now, the same error as
        before until the next try is due. While the old token is valid, raises neither.
        """
        with self._lock:
            now, old = time.time(), self._token
            if old is not None and now < old.begins + (old.ends - old.begins) * self._factor:
                return old
            if self._failure is None or self._clock() >= self._again:
                self._renew(old, now)
            if self._failure is not None and (old is None or now >= old.ends):
                # Credentials that were valid once are worth waiting for.
                kind = type(self._failure) if old is None else Unavailable
                raise kind(self._failure.message, reason=self._failure.reason)
            assert self._token is not None
            return self._token

    def _renew(self, old: Token | None, now: float) -> None:
        try:
            self._token = self._get()
        except (Unauthenticated, Unavailable) as error:
            self._wait = self._first if self._failure is None else min(2 * self._wait, self.patience)
            self._again = self._clock() + self._wait
            self._failure = error
            if error.message != self._logged:
                self._logged = error.message
                good = {} if old is None else {"old_one_is_good_for_seconds": max(0, round(old.ends - now))}
                log.warning("token_unavailable", error=error.message, **good)
            return
        if self._failure is not None:
            log.info("token_available_again", principal=self._token.principal)
        self._failure, self._logged = None, ""
