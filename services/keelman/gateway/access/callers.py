"""Turns a token or a certificate into a caller, or refuses it: the one place that does so."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

from keelman.gateway.access.access_file import KEYS, WatchedAccessFile
from keelman.gateway.access.accounts import WHOLE, Account
from keelman.gateway.access.issuers import KeySource
from keelman.gateway.access.key_sets import KeySets
from keelman.gateway.access.last_uses import TOKEN, USER, LastUses
from keelman.gateway.access.oidc import OidcTokens, is_jwt
from keelman.gateway.access.signatures import AccessKey
from keelman.gateway.caller import EVERYBODY, GatewayCaller
from keelman.gateway.settings import Settings
from keelman.model.access.roles import token_digest
from keelman.model.errors import InvalidArgument, PermissionDenied, Unauthenticated
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.server import MESH, is_loopback
from keelman.runtime.supervise import Siblings
from keelman.runtime.tls.certificates import shown_time

T = TypeVar("T")
FIRST_SECONDS = 5.0
"""The time at the start for issuers to give their keys."""
CLOSED = "CLOSED"
"""The reason of a refusal by a listener that admits no caller."""
HOW = "Authorization: Bearer TOKEN, or a client certificate of a user"


class Admission(Enum):
    """The callers that a listener admits: all, the callers in the access file, or none."""

    OPEN = "open"
    CHECKED = "checked"
    CLOSED = "closed"


class Callers:
    """The callers of the gateway, by its access files."""

    def __init__(self, settings: Settings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Raises InvalidArgument for illegal settings and files."""
        self._now = now
        self._key_sets = KeySets()
        self._oidc = OidcTokens(self._key_sets, now)
        self.last_uses = LastUses(settings.access_file, now)
        self._open = settings.open_access
        self._file = WatchedAccessFile("gateway.access_file", settings.access_file)
        self._managed = WatchedAccessFile(
            "gateway.managed_connect_access_file", settings.managed_connect_access_file, KEYS
        )
        if self._open and self._file.is_given:
            raise InvalidArgument.of("gateway.open_access", True, "false, as gateway.access_file is set")
        host = settings.http_host
        if self._file.is_given and not (is_loopback(host) or settings.http_tls or settings.trust == MESH):
            legal = "a loopback address, or any with http_tls or trust = mesh: tokens would be sent in plain text"
            raise InvalidArgument.of("gateway.http_host", host, legal)

    def admission(self, host: str) -> Admission:
        """Returns the admission of a listener at this address."""
        if self._file.is_given:
            return Admission.CHECKED
        return Admission.OPEN if self._open or is_loopback(host) else Admission.CLOSED

    def caller(self, admission: Admission, authorization: str, identity: Identity | None = None) -> GatewayCaller:
        """Returns the caller, by the header or by the identity in its certificate. Raises Unauthenticated, and
        PermissionDenied for a closed listener."""
        if admission is Admission.OPEN:
            return EVERYBODY
        if admission is Admission.CLOSED:
            raise PermissionDenied(
                "this gateway listens off loopback without an access file, so it admits no caller: set "
                "gateway.access_file, or gateway.open_access if the network limits who reaches it",
                reason=CLOSED,
            )
        if authorization:
            return self._by_token(authorization)
        if identity is None:
            raise Unauthenticated(f"credentials are missing: {HOW}", reason="NO_CREDENTIALS")
        user = self._file.now().users.get(identity.name) if identity.kind is IdentityKind.USER else None
        if user is None:
            raise Unauthenticated(f"{identity} is no caller that the access file names", reason="UNKNOWN_USER")
        return self._admitted(USER, user)

    def _by_token(self, authorization: str) -> GatewayCaller:
        given, content = _token(authorization), self._file.now()
        token = content.tokens.get(token_digest(given))
        if token is None and content.issuers and is_jwt(given):
            return self._oidc.caller(given, content.issuers)
        if token is None:
            raise Unauthenticated(
                "the token is unknown: the access file has no token with this digest", reason="UNKNOWN_TOKEN"
            )
        return self._admitted(TOKEN, token)

    def _admitted(self, kind: str, caller: GatewayCaller) -> GatewayCaller:
        """Returns the caller, and notes its use. Raises Unauthenticated if its credentials have expired."""
        if caller.expire_time is not None and caller.expire_time <= self._now():
            raise Unauthenticated(
                f"the credentials of {caller.name} expired at {shown_time(caller.expire_time)}", reason="EXPIRED"
            )
        self.last_uses.note(kind, caller.name)
        return caller

    @property
    def problem(self) -> str:
        """Why the access files or keys of issuers cannot be read at present; empty if they can."""
        return self._file.problem or self._managed.problem or self._key_sets.problem(self._key_sources())

    @contextlib.asynccontextmanager
    async def reading_keys(self) -> AsyncIterator[None]:
        """Reads the keys of issuers of tokens, before the block and within it."""
        async with Siblings() as siblings:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_SECONDS):
                    await self._key_sets.refresh(self._key_sources())
            reading = siblings.start(self._key_sets.run(self._key_sources), name="issuer-keys")
            yield
            reading.cancel()

    def _key_sources(self) -> list[KeySource]:
        return [issuer.keys for issuer in self._file.now().issuers.values()]

    @property
    def keys(self) -> Mapping[str, AccessKey]:
        """The access keys of the managed Connect API, as in the files now."""
        return _Live(lambda: {**self._file.now().keys, **self._managed.now().keys})

    def account(self, number: str) -> Account:
        """Returns what an account may name, as in the files now: all if it is the only account and has no table."""
        named = {**self._file.now().accounts, **self._managed.now().accounts}
        if number in named:
            return named[number]
        return WHOLE if {key.account for key in self.keys.values()} <= {number} else Account.own(number)

    @property
    def roles(self) -> Mapping[str, Mapping[str, str]]:
        """Client properties for Kafka by the ARN of an execution role, as in the files now."""
        return _Live(lambda: {**self._file.now().roles, **self._managed.now().roles})

    @property
    def tls(self) -> Mapping[str, str]:
        """Client properties for Kafka with TLS and without a role, as in the files now."""
        return _Live(lambda: {**self._file.now().tls, **self._managed.now().tls})


def _token(authorization: str) -> str:
    """Returns the token in a header: Bearer TOKEN, or Basic with the token as password, for clients without Bearer.
    Raises Unauthenticated."""
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise Unauthenticated(
        "the Authorization header is neither Bearer TOKEN nor Basic with the token as password", reason="BAD_HEADER"
    )


class _Live(Mapping[str, T]):
    """A mapping that is read anew at each access."""

    def __init__(self, now: Callable[[], Mapping[str, T]]) -> None:
        self._now = now

    def __getitem__(self, key: str) -> T:
        return self._now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())
