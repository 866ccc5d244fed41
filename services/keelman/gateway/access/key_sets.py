"""Keeps the public keys of issuers of tokens: reads them from files and URLs, and again as they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import jwt
import orjson

from keelman.gateway.access.issuers import KeySource, checked_url
from keelman.model.errors import InvalidArgument, KeelmanError, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

log = get_logger()
MISS_SECONDS = 30.0
"""The least time between two reads that tokens with an unknown key cause."""
RETRY_SECONDS = 10.0
OLD_SECONDS = 3600.0
"""How long keys that cannot be read again stay in effect."""
FETCH_SECONDS, FETCH_BYTES = 10.0, 1 << 20
MIN_RSA_BITS = 2048
_OF_KEY = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key, and the only algorithm that it is for."""

    id: str
    algorithm: str
    key: Any = field(repr=False)


Keys: TypeAlias = tuple[VerifyingKey, ...]
Fetch: TypeAlias = Callable[[KeySource], Awaitable[bytes]]
"""Reads a set of keys from a URL. Raises Unavailable."""


def keys_of(content: bytes) -> Keys:
    """Returns the keys of a JWKS that verify signatures; keys of other kinds are left out. Raises InvalidArgument for
    another document."""
    try:
        document = orjson.loads(content)
        rows = document["keys"]
        found = [_key(row) for row in rows]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(f"it is no JSON Web Key Set: {error!r}") from None
    return tuple(key for key in found if key is not None)


def _key(row: Mapping[str, Any]) -> VerifyingKey | None:
    algorithm = _OF_KEY.get((str(row.get("kty")), row.get("crv")))
    if algorithm is None or row.get("alg", algorithm) != algorithm or row.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(dict(row), algorithm).key
    except jwt.PyJWTError:
        return None
    if algorithm == "RS256" and key.key_size < MIN_RSA_BITS:
        return None
    return VerifyingKey(str(row.get("kid", "")), algorithm, key)


@dataclass(slots=True)
class _KeySet:
    keys: Keys = ()
    read_at: float | None = None
    tried_at: float | None = None
    stamp: tuple[int, ...] = ()
    is_wanted: bool = False
    problem: str = ""


class KeySets:
    """The keys of issuers. `run` reads those of URLs; those of files are read when they are needed."""

    def __init__(self, fetch: Fetch | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch or fetch_keys
        self._clock = clock
        self._sets: dict[KeySource, _KeySet] = {}
        self._wake = asyncio.Event()

    def of(self, source: KeySource) -> Keys:
        """Returns the present keys; none before the first read, and once they are too old."""
        key_set = self._sets.setdefault(source, _KeySet())
        if source.file is not None:
            self._read_file(source, key_set)
        if key_set.read_at is not None and self._clock() > key_set.read_at + max(OLD_SECONDS, source.refresh_seconds):
            return ()
        return key_set.keys

    def missed(self, source: KeySource) -> None:
        """Has keys read again soon, as a token names one that is not among them: once in MISS_SECONDS."""
        key_set = self._sets.setdefault(source, _KeySet())
        if key_set.tried_at is None or self._clock() >= key_set.tried_at + MISS_SECONDS:
            key_set.is_wanted = True
            self._wake.set()

    def problem(self, sources: Iterable[KeySource]) -> str:
        """Returns why keys of these sources cannot be read at present; empty if they can."""
        sets = (self._sets.get(source) for source in sources)
        return next((key_set.problem for key_set in sets if key_set is not None and key_set.problem), "")

    async def run(self, sources: Callable[[], Iterable[KeySource]]) -> None:
        """Reads keys from URLs until cancelled, again after their refresh time and when they are missed."""
        while True:
            self._wake.clear()
            await self.refresh(sources())
            await wait_or_stop(self._wake, 1.0)

    async def refresh(self, sources: Iterable[KeySource]) -> None:
        """Reads the keys that are due, and forgets those of other sources."""
        present = set(sources)
        for gone in self._sets.keys() - present:
            del self._sets[gone]
        for source in present:
            key_set = self._sets.setdefault(source, _KeySet())
            if source.file is None and self._is_due(source, key_set):
                await self._read_url(source, key_set)

    def _is_due(self, source: KeySource, key_set: _KeySet) -> bool:
        if key_set.tried_at is None or key_set.is_wanted:
            return True
        pause = min(RETRY_SECONDS, source.refresh_seconds) if key_set.problem else source.refresh_seconds
        return self._clock() >= key_set.tried_at + pause

    async def _read_url(self, source: KeySource, key_set: _KeySet) -> None:
        key_set.is_wanted = False
        key_set.tried_at = self._clock()
        try:
            keys = keys_of(await self._fetch(source))
        except KeelmanError as error:
            self._failed(source, key_set, error.message)
        else:
            self._took(source, key_set, keys)

    def _read_file(self, source: KeySource, key_set: _KeySet) -> None:
        assert source.file is not None
        try:
            status = source.file.stat()
            stamp = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            if stamp == key_set.stamp and not key_set.problem:
                key_set.read_at = self._clock()
                return
            keys = keys_of(source.file.read_bytes())
        except OSError as error:
            self._failed(source, key_set, f"{source.file}: {error.strerror}")
        except InvalidArgument as error:
            self._failed(source, key_set, f"{source.file}: {error.message}")
        else:
            key_set.stamp = stamp
            self._took(source, key_set, keys)

    def _took(self, source: KeySource, key_set: _KeySet, keys: Keys) -> None:
        if keys != key_set.keys or key_set.problem:
            log.info("issuer_keys_read", issuer=source.issuer, keys=[key.id for key in keys])
        key_set.keys, key_set.read_at, key_set.problem = keys, self._clock(), ""

    def _failed(self, source: KeySource, key_set: _KeySet, reason: str) -> None:
        problem = f"the keys of issuer {source.issuer} cannot be read: {reason}"
        if problem != key_set.problem:
            log.warning("issuer_keys_not_read", issuer=source.issuer, error=reason)
        key_set.problem = problem


async def fetch_keys(source: KeySource) -> bytes:
    """Returns the JWKS of an issuer, at its URL or at the one in its discovery document. Raises Unavailable."""
    verify: Any = True
    try:
        if source.ca is not None:
            import ssl  # noqa: PLC0415

            verify = ssl.create_default_context(cafile=str(source.ca))
        async with (
            asyncio.timeout(FETCH_SECONDS),
            httpx.AsyncClient(verify=verify, timeout=FETCH_SECONDS, follow_redirects=False) as client,
        ):
            url = source.url or await _discovered(client, source.issuer)
            return await _body(client, url)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, TimeoutError) as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from None


async def _discovered(client: httpx.AsyncClient, issuer: str) -> str:
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = orjson.loads(await _body(client, url))
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise Unavailable(f"{url} is not of issuer {issuer!r}: the file has another URL than the issuer itself")
    return checked_url("jwks_uri", str(document.get("jwks_uri", "")))


async def _body(client: httpx.AsyncClient, url: str) -> bytes:
    body = bytearray()
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"{url} answers {answer.status_code}")
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > FETCH_BYTES:
                raise Unavailable(f"{url} answers with more than {FETCH_BYTES} bytes")
    return bytes(body)
