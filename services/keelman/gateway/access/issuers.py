"""Reads the issuers of OpenID Connect tokens that an access file names, with the roles that they give."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from keelman.model.access.roles import AnyRole
from keelman.model.errors import InvalidArgument

TABLE = "issuer"
ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""The legal algorithms: each has a private key, which the gateway does not know."""
MAX_LEEWAY = 300
_FIELDS = {
    "url", "audience", "jwks_url", "jwks_file", "ca", "name_claim", "algorithms", "leeway_seconds", "refresh_seconds",
    "rule",
}  # fmt: skip
_SPLIT = frozenset(("scope", "scp"))
"""Claims whose text is a list of words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Gives a role to callers whose claim has a value. `clusters`: as of a caller."""

    claim: str
    value: str
    role: AnyRole
    clusters: frozenset[str] | None = None

    def takes(self, claims: Mapping[str, Any]) -> bool:
        """Tells whether claims have the value: as a text, in a list, or among the words of a scope."""
        found = claim_of(claims, self.claim)
        if isinstance(found, str) and self.claim in _SPLIT:
            return self.value in found.split()
        return found == self.value if isinstance(found, str) else isinstance(found, list) and self.value in found


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where an issuer's public keys are: a file, a URL, or neither; then the issuer's discovery document has the URL.
    `ca`: the certificates by which its server is trusted, None for those of the system."""

    issuer: str
    file: Path | None = None
    url: str = ""
    ca: Path | None = None
    refresh_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer of tokens. The first of its rules that takes a token's claims gives the role."""

    url: str
    audience: tuple[str, ...]
    keys: KeySource
    rules: tuple[Rule, ...]
    name_claim: str = "sub"
    algorithms: tuple[str, ...] = ALGORITHMS
    leeway_seconds: float = 30.0


def claim_of(claims: Mapping[str, Any], name: str) -> Any:
    """Returns a claim by its name; a name with dots may name one within others, as in realm_access.roles."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


RoleOf = Callable[[str, Mapping[str, Any]], AnyRole]
ClustersOf = Callable[[str, Mapping[str, Any]], frozenset[str] | None]


def read_issuers(
    label: str, document: Mapping[str, Any], role_of: RoleOf, clusters_of: ClustersOf
) -> dict[str, Issuer]:
    """Returns the issuers of the tables [[issuer]] by their URLs; `role_of` and `clusters_of` read these fields of a
    table. Raises InvalidArgument."""
    issuers: dict[str, Issuer] = {}
    for where, table in _tables(label, document.get(TABLE, []), TABLE, _FIELDS):
        url = _url(where, "url", table.get("url"))
        if url in issuers:
            raise InvalidArgument.of(f"{where}: url", url, "a URL unlike those of the other issuers")
        algorithms = _texts(where, table, "algorithms", ALGORITHMS)
        if set(algorithms) - set(ALGORITHMS):
            raise InvalidArgument.of(f"{where}: algorithms", ", ".join(algorithms), f"of {', '.join(ALGORITHMS)}")
        issuers[url] = Issuer(
            url,
            _texts(where, table, "audience"),
            _source(where, table, url),
            tuple(_rules(where, table, role_of, clusters_of)),
            _text(where, "name_claim", table.get("name_claim", "sub")),
            algorithms,
            _number(f"{where}: leeway_seconds", table.get("leeway_seconds", 30), 0, MAX_LEEWAY),
        )
    return issuers


def _rules(where: str, table: Mapping[str, Any], role_of: RoleOf, clusters_of: ClustersOf) -> Iterator[Rule]:
    rules = table.get("rule", [])
    if not rules:
        raise InvalidArgument.of(
            where, "rule", "one table [[issuer.rule]] at least: without any its tokens have no role"
        )
    for place, rule in _tables(where, rules, "rule", {"claim", "value", "role", "clusters"}):
        claim, value = (_text(place, name, rule.get(name)) for name in ("claim", "value"))
        yield Rule(claim, value, role_of(place, rule), clusters_of(place, rule))


def _source(where: str, table: Mapping[str, Any], issuer: str) -> KeySource:
    files = {name: table.get(name) for name in ("jwks_file", "ca")}
    paths = {name: None if value is None else Path(_text(where, name, value)) for name, value in files.items()}
    url = "" if table.get("jwks_url") is None else _url(where, "jwks_url", table["jwks_url"])
    if url and paths["jwks_file"] is not None:
        raise InvalidArgument.of(f"{where}: jwks_url", url, "left out, as jwks_file is set")
    seconds = _number(f"{where}: refresh_seconds", table.get("refresh_seconds", 300), 1, 86_400)
    return KeySource(issuer, paths["jwks_file"], url, paths["ca"], seconds)


def _tables(label: str, rows: Any, name: str, legal: set[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidArgument.of(label, name, "tables with double brackets")
    for number, table in enumerate(rows, 1):
        if unknown := sorted(set(table) - legal):
            raise InvalidArgument.of(f"{label}: {name} {number}", unknown[0], f"only {', '.join(sorted(legal))}")
        yield f"{label}: {name} {number}", table


def checked_url(where: str, url: str) -> str:
    """Returns a URL from which keys may be read: https, or http of this host. Raises InvalidArgument."""
    parts = urlsplit(url)
    try:
        is_own = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        is_own = False
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_own)):
        raise InvalidArgument.of(where, url, "a URL that begins with https://; http:// only on loopback")
    return url


def _url(where: str, name: str, value: Any) -> str:
    return checked_url(f"{where}: {name}", _text(where, name, value))


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument.of(f"{where}: {name}", type(value).__name__, "a text that is not empty")
    return value


def _texts(where: str, table: Mapping[str, Any], name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    given = table.get(name, list(default))
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise InvalidArgument.of(f"{where}: {name}", type(given).__name__, "a text, or a list of texts")
    return tuple(texts)


def _number(where: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InvalidArgument.of(where, str(value), f"a number from {least:g} to {most:g}")
    return float(value)
