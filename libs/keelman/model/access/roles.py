"""Roles, the rights that each has, and the digest by which a token is known without being kept."""

from __future__ import annotations

import hashlib
from enum import StrEnum

TOKEN_BEGINS = "keelman_"
"""How a token begins, so that people and scanners recognise one that is where it must not be."""
TOKEN_BYTES = 32


class Right(StrEnum):
    """A right that a call needs: to see; to have what is there begin, change and end; to say what there is."""

    VIEW = "view"
    OPERATE = "operate"
    ADMINISTER = "administer"


class Role(StrEnum):
    """The role of a caller."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def has(self, right: Right) -> bool:
        """Whether a role has a right: an operator sees, too, and an admin may do everything."""
        return list(Right).index(right) <= list(Role).index(self)


def token_digest(token: str) -> str:
    """SHA-256 of a token, hexadecimal: a token is long and random, so that nobody finds one by its digest."""
    return hashlib.sha256(token.encode()).hexdigest()
