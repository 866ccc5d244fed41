"""Roles, the rights of each, and the digest by which a token is recognised without being stored."""

from __future__ import annotations

import hashlib
from enum import StrEnum

TOKEN_BEGINS = "keelman_"
"""The prefix of tokens, so that people and scanners recognise a leaked one."""
TOKEN_BYTES = 32


class Right(StrEnum):
    """A right that a call needs: to see resources; to start, change and end existing ones; to decide which exist."""

    VIEW = "view"
    OPERATE = "operate"
    ADMINISTER = "administer"


class Role(StrEnum):
    """The role of a caller."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def has(self, right: Right) -> bool:
        """Returns whether a role has a right: an operator sees, too, and an admin may do everything."""
        return list(Right).index(right) <= list(Role).index(self)


def token_digest(token: str) -> str:
    """Returns the SHA-256 of a token, hexadecimal: a token is long and random, so that its digest does not reveal
    it."""
    return hashlib.sha256(token.encode()).hexdigest()
