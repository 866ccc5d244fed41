"""Reads the access file, which lists the callers of the gateway, and reads it again when it changes."""

from __future__ import annotations

import math
import os
import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from keelman.connect.config.providers import SECRET_NAMES
from keelman.gateway.access.accounts import BUCKET, Account
from keelman.gateway.access.issuers import TABLE as ISSUERS
from keelman.gateway.access.issuers import Issuer, read_issuers
from keelman.gateway.access.own_roles import TABLE as ROLES
from keelman.gateway.access.own_roles import named_role, read_own_roles
from keelman.gateway.access.signatures import ACCOUNT, KEY_ID, AccessKey
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import OwnRole, Role
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name
from keelman.runtime.logs.logging import get_logger

log = get_logger()

TLS = "tls"
KEYS = ("key", "account", "role", TLS, ROLES)
"""The tables of a file for the managed Connect API only."""
ALL = ("token", "user", ISSUERS, *KEYS)
EXPIRES = "expires"
OwnRoles: TypeAlias = Mapping[str, OwnRole]
LOOK_SECONDS = 0.005
"""How long a look at the file is good for. A look at each call would give other threads the interpreter each time: to
get it back takes longer than all else that a guard does."""
RETRY_SECONDS = 1.0
OLD_SECONDS = 60.0
"""How long the former content of a file that cannot be read any more stays in effect."""
_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{1,128}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AccessFile:
    """The content of an access file: callers by the SHA-256 of their token and by the name in their certificate, access
    keys by their id, accounts' permissions by their number, client properties for Kafka by the ARN of an execution
    role, client properties for TLS without a role, and issuers of OpenID Connect tokens by their URLs."""

    tokens: Mapping[str, GatewayCaller] = field(default_factory=dict)
    users: Mapping[str, GatewayCaller] = field(default_factory=dict)
    keys: Mapping[str, AccessKey] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    issuers: Mapping[str, Issuer] = field(default_factory=dict)


NO_CALLERS = AccessFile()


def read_access_file(label: str, file: Path | None, tables: tuple[str, ...] = ALL) -> AccessFile:
    """Reads a TOML file with these kinds of tables; returns an empty content without a file.

    [roles] has the file's own roles. [[token]] has sha256, name, role, clusters and expires, [[user]] the same without
    sha256, [[key]] id, secret, account, role and expires, [[account]] id, secrets and buckets, [[role]] arn and
    client_properties, [tls] client_properties, [[issuer]] what `read_issuers` reads. Raises InvalidArgument with the
    setting `label` and the error in the file, never a secret.
    """
    if file is None:
        return AccessFile()
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument.of(label, str(file), f"a file that can be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument.of(label, str(file), f"a TOML file ({error})") from None
    if unknown := sorted(set(document) - set(tables)):
        names = [f"[{name}]" if name in (TLS, ROLES) else f"[[{name}]]" for name in tables]
        legal = f"{', '.join(names[:-1])} and {names[-1]}"
        raise InvalidArgument.of(label, unknown[0], f"tables {legal} alone")
    own = read_own_roles(label, document)
    return AccessFile(
        _tokens(label, document, own), _users(label, document, own), _keys(label, document, own),
        _accounts(label, document), _roles(label, document), _tls(label, document),
        read_issuers(label, document, lambda where, table: named_role(where, table, own), clusters_of),
    )  # fmt: skip


def _tokens(label: str, document: Mapping[str, Any], own: OwnRoles) -> dict[str, GatewayCaller]:
    callers: dict[str, GatewayCaller] = {}
    for where, table in _tables(label, document, "token", "sha256", "name", "role", "clusters", EXPIRES):
        digest = _text(where, table, "sha256")
        if not _DIGEST.fullmatch(digest) or digest in callers:
            raise InvalidArgument.of(f"{where}: sha256", digest, "64 digits of 0-9a-f, unlike all others")
        callers[digest] = _caller(where, table, {caller.name for caller in callers.values()}, own)
    return callers


def _users(label: str, document: Mapping[str, Any], own: OwnRoles) -> dict[str, GatewayCaller]:
    callers: dict[str, GatewayCaller] = {}
    for where, table in _tables(label, document, "user", "name", "role", "clusters", EXPIRES):
        caller = _caller(where, table, callers, own)
        callers[caller.name] = caller
    return callers


def _keys(label: str, document: Mapping[str, Any], own: OwnRoles) -> dict[str, AccessKey]:
    access_keys: dict[str, AccessKey] = {}
    for where, table in _tables(label, document, "key", "id", "secret", "account", "role", EXPIRES):
        key_id, account = _text(where, table, "id"), _text(where, table, "account")
        if not KEY_ID.fullmatch(key_id) or key_id in access_keys:
            raise InvalidArgument.of(f"{where}: id", key_id, "1 to 128 letters, digits and _+=,.@-, unlike all others")
        if not ACCOUNT.fullmatch(account):
            raise InvalidArgument.of(f"{where}: account", account, "12 digits, as a text")
        role = named_role(where, table, own) if "role" in table else Role.ADMIN
        access_keys[key_id] = AccessKey(
            key_id, _text(where, table, "secret"), account, role, _expire_time(where, table)
        )
    return access_keys


def _accounts(label: str, document: Mapping[str, Any]) -> dict[str, Account]:
    accounts: dict[str, Account] = {}
    for where, table in _tables(label, document, "account", "id", "secrets", "buckets"):
        number = _text(where, table, "id")
        if not ACCOUNT.fullmatch(number) or number in accounts:
            raise InvalidArgument.of(f"{where}: id", number, "12 digits, as a text, unlike all others")
        own = Account.own(number)
        accounts[number] = Account(
            _patterns(where, table, "secrets", SECRET_NAMES, own.secrets),
            _patterns(where, table, "buckets", BUCKET, ()),
        )
    return accounts


def _patterns(
    where: str, table: Mapping[str, Any], name: str, legal: re.Pattern[str], default: tuple[str, ...]
) -> tuple[str, ...]:
    patterns = table.get(name)
    if patterns is None:
        return default
    if not isinstance(patterns, list) or not all(
        isinstance(pattern, str) and pattern and legal.fullmatch(pattern) for pattern in patterns
    ):
        raise InvalidArgument.of(f"{where}: {name}", patterns, f"a list of names of {name}, with * for any rest")
    return tuple(patterns)


def _roles(label: str, document: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    roles: dict[str, Mapping[str, str]] = {}
    for where, table in _tables(label, document, "role", "arn", "client_properties"):
        properties = _client_properties(where, table)
        roles[_text(where, table, "arn")] = properties
    return roles


def _tls(label: str, document: Mapping[str, Any]) -> Mapping[str, str]:
    where, table = f"{label}: {TLS}", document.get(TLS)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise InvalidArgument.of(label, TLS, "a table [tls]")
    if unknown := sorted(set(table) - {"client_properties"}):
        raise InvalidArgument.of(where, unknown[0], "only client_properties")
    properties = _client_properties(where, table)
    for key in properties:
        if not key.startswith("ssl."):
            raise InvalidArgument.of(f"{where}: client_properties", key, "properties that begin with ssl.")
    return properties


def _client_properties(where: str, table: Mapping[str, Any]) -> dict[str, str]:
    properties = table.get("client_properties")
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise InvalidArgument.of(f"{where}: client_properties", type(properties).__name__, "a table of texts")
    return properties


def _caller(where: str, table: Mapping[str, Any], taken: Any, own: OwnRoles) -> GatewayCaller:
    """Returns the caller of a table. Raises InvalidArgument, also for a name in another table."""
    name = _text(where, table, "name")
    if not _NAME.fullmatch(name) or name in taken:
        raise InvalidArgument.of(f"{where}: name", name, "1 to 128 letters, digits and _+=,.@-, unlike all others")
    role = named_role(where, table, own)
    return GatewayCaller(name, role, clusters_of(where, table), _expire_time(where, table))


def clusters_of(where: str, table: Mapping[str, Any]) -> frozenset[str] | None:
    """Returns the worker clusters that a table names; None for the whole installation. Raises InvalidArgument."""
    clusters = table.get("clusters")
    if clusters is None:
        return None
    if not isinstance(clusters, list) or not clusters or not all(isinstance(cluster, str) for cluster in clusters):
        legal = "a list of worker clusters' names that is not empty; left out: the whole installation"
        raise InvalidArgument.of(f"{where}: clusters", clusters, legal)
    for cluster in clusters:
        checked_name(f"{where}: clusters", cluster)
    return frozenset(clusters)


def _expire_time(where: str, table: Mapping[str, Any]) -> datetime | None:
    given = table.get(EXPIRES)
    if given is None or (isinstance(given, datetime) and given.tzinfo is not None):
        return given
    raise InvalidArgument.of(f"{where}: {EXPIRES}", str(given), "a time with its offset, e.g. 2027-01-31T00:00:00Z")


def _tables(label: str, document: Mapping[str, Any], name: str, *legal: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the tables of a kind, each with its name for messages. Raises InvalidArgument."""
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidArgument.of(label, name, f"tables that begin with [[{name}]]")
    for number, table in enumerate(rows, 1):
        if unknown := sorted(set(table) - set(legal)):
            raise InvalidArgument.of(f"{label}: {name} {number}", unknown[0], f"only {', '.join(legal)}")
        yield f"{label}: {name} {number}", table


def _text(where: str, table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgument.of(f"{where}: {name}", type(value).__name__, "a text that is not empty")
    return value


class WatchedAccessFile:
    """The present content of an access file. If the file becomes illegal or unreadable, that is logged; the last legal
    content stays in effect for a minute, and then there are no callers until the file can be read."""

    def __init__(
        self,
        label: str,
        file: Path | None,
        tables: tuple[str, ...] = ALL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises InvalidArgument for a file that is not legal."""
        self._label, self._file, self._tables, self._clock = label, file, tables, clock
        self._stamp = self._present_stamp()
        self._content = read_access_file(label, file, tables)
        self._failed_at: float | None = None
        self._tried_at = 0.0
        self._looked_at = -math.inf
        self._problem = ""

    @property
    def is_given(self) -> bool:
        """Whether an access file is configured."""
        return self._file is not None

    @property
    def problem(self) -> str:
        """Why the file cannot be read at present; empty if it can."""
        self.now()
        return self._problem

    def now(self) -> AccessFile:
        """Returns the content, and reads it again if the file has changed since the last look at it."""
        now = self._clock()
        if now < self._looked_at + LOOK_SECONDS:
            return self._content
        self._looked_at = now
        stamp = self._present_stamp()
        if stamp != self._stamp or (self._failed_at is not None and now >= self._tried_at + RETRY_SECONDS):
            self._stamp, self._tried_at = stamp, now
            self._read(now)
        if self._failed_at is None or now < self._failed_at + OLD_SECONDS:
            return self._content
        if self._content != NO_CALLERS:
            log.error("access_file_closed", error=self._problem, seconds=OLD_SECONDS)
            self._content = NO_CALLERS
        return self._content

    def _read(self, now: float) -> None:
        try:
            self._content = read_access_file(self._label, self._file, self._tables)
        except InvalidArgument as error:
            self._failed_at = now if self._failed_at is None else self._failed_at
            if error.message != self._problem:
                log.warning("access_file_not_read", error=error.message)
            self._problem = error.message
        else:
            self._failed_at, self._problem = None, ""
            log.info("access_file_read", file=str(self._file))

    def _present_stamp(self) -> tuple[int, ...]:
        if self._file is None:
            return ()
        try:
            status = os.stat(self._file)
        except OSError:
            return (-1,)
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
