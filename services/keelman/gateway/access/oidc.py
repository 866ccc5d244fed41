"""Turns OpenID Connect tokens into callers: verifies signature, issuer, audience and times, and finds the role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from keelman.gateway.access.issuers import Issuer, claim_of
from keelman.gateway.access.key_sets import Keys, KeySets, VerifyingKey
from keelman.gateway.caller import GatewayCaller
from keelman.model.errors import PermissionDenied, Unauthenticated

MAX_CHARACTERS = 16 << 10
MAX_NAME = 200
PREFIX = "oidc:"
"""The prefix of the names of these callers: no caller of the access file has such a name."""
_OPTIONS: Any = {
    "require": ["exp", "iss", "aud"], "verify_signature": True,
    "verify_exp": False, "verify_nbf": False, "verify_iat": False,
}  # fmt: skip
"""Times are verified here, by one clock and the issuer's leeway."""
_NO_VERIFICATION: Any = {"verify_signature": False}


def is_jwt(token: str) -> bool:
    """Tells whether a token has the form of a signed JSON Web Token."""
    return token.count(".") == 2


class OidcTokens:
    """Verifies tokens of the issuers that an access file names."""

    def __init__(self, key_sets: KeySets, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._key_sets = key_sets
        self._now = now

    def caller(self, token: str, issuers: Mapping[str, Issuer]) -> GatewayCaller:
        """Returns the caller of a token. Raises Unauthenticated, and PermissionDenied for a token without a role."""
        header, issuer = _claimed(token, issuers)
        key = self._key(header, issuer)
        try:
            claims = jwt.decode(
                token, key.key, algorithms=[key.algorithm], audience=issuer.audience, issuer=issuer.url,
                leeway=issuer.leeway_seconds, options=_OPTIONS,
            )  # fmt: skip
            expire_time = self._in_time(claims, issuer)
        except (jwt.PyJWTError, ValueError, OverflowError) as error:
            raise _bad(f"{error}") from None
        return _with_role(claims, issuer, expire_time)

    def _key(self, header: Mapping[str, Any], issuer: Issuer) -> VerifyingKey:
        """Returns the key that a token names; the key alone determines the algorithm of the verification."""
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in issuer.algorithms:
            raise _bad(f"its algorithm is not one of {', '.join(issuer.algorithms)}")
        keys: Keys = self._key_sets.of(issuer.keys)
        named = [key for key in keys if key_id is None or key.id == key_id]
        fitting = [key for key in named if key.algorithm == algorithm]
        if len(fitting) == 1:
            return fitting[0]
        if not named or key_id is None:
            self._key_sets.missed(issuer.keys)
            raise Unauthenticated(
                f"the token is signed with a key that issuer {issuer.url} does not publish, or that was not read yet: "
                "call again in a moment",
                reason="UNKNOWN_KEY",
            )
        raise _bad("its key is for another algorithm")

    def _in_time(self, claims: Mapping[str, Any], issuer: Issuer) -> datetime:
        """Returns the time at which a token ends. Raises Unauthenticated for one that has ended or not begun."""
        now, leeway = self._now().timestamp(), issuer.leeway_seconds
        end = _time(claims, "exp")
        assert end is not None
        if end + leeway <= now:
            raise Unauthenticated("the token has expired: get another one from its issuer", reason="EXPIRED")
        for name in ("nbf", "iat"):
            begin = _time(claims, name)
            if begin is not None and begin > now + leeway:
                raise _bad(f"it begins in the future ({name}): check the clocks")
        return datetime.fromtimestamp(end + leeway, UTC)


def _claimed(token: str, issuers: Mapping[str, Issuer]) -> tuple[Mapping[str, Any], Issuer]:
    """Returns the header and the issuer that a token claims to have."""
    if len(token) > MAX_CHARACTERS:
        raise _bad(f"it has more than {MAX_CHARACTERS} characters")
    try:
        header = jwt.get_unverified_header(token)
        claims = jwt.decode(token, options=_NO_VERIFICATION)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise _bad("it is no signed JSON Web Token") from None
    if "crit" in header:
        raise _bad("its header demands an extension")
    claimed = claims.get("iss")
    issuer = issuers.get(claimed) if isinstance(claimed, str) else None
    if issuer is None:
        raise _bad("the access file does not name its issuer")
    return header, issuer


def _with_role(claims: Mapping[str, Any], issuer: Issuer, expire_time: datetime) -> GatewayCaller:
    name = claim_of(claims, issuer.name_claim)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise _bad(f"its claim {issuer.name_claim} is no name of at most {MAX_NAME} characters")
    for rule in issuer.rules:
        if rule.takes(claims):
            return GatewayCaller(f"{PREFIX}{name}", rule.role, rule.clusters, expire_time)
    raise PermissionDenied(
        f"{PREFIX}{name} has no role: no rule of issuer {issuer.url} in the access file takes its claims",
        reason="NO_ROLE",
    )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None and name != "exp":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _bad(f"its claim {name} is no time")
    return float(value)


def _bad(reason: str) -> Unauthenticated:
    return Unauthenticated(f"the token is not good: {reason}", reason="BAD_TOKEN")
