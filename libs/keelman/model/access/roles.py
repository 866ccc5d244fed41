"""Roles, the rights of each, and the digest by which a token is recognised without being stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

TOKEN_BEGINS = "keelman_"
"""The prefix of tokens, so that people and scanners recognise a leaked one."""
TOKEN_BYTES = 32


class Right(StrEnum):
    """A right that a call needs. Each call needs one of them."""

    VIEW = "view"
    """To see resources, without secrets and records; each role has it."""
    RESTART = "restart"
    """To start, stop, pause, resume and restart connectors, workers and clusters."""
    CONFIGURE = "configure"
    """To create, change and delete connectors and definitions, and to change offsets."""
    CHANGE_TOPICS = "change-topics"
    SEE_RECORDS = "see-records"
    """To see records of topics, previews and dead letters."""
    SEE_SECRETS = "see-secrets"
    """To see configurations of connectors with their secrets."""
    DRAIN = "drain"
    """To cordon and drain nodes."""
    MANAGE_CLUSTERS = "manage-clusters"
    """To create, change and delete broker clusters, worker clusters, dedicated connectors and worker configurations."""
    MANAGE_NODES = "manage-nodes"
    """To create, change and delete nodes, and tokens with which hosts join."""
    MANAGE_PLUGINS = "manage-plugins"
    MANAGE_SECRETS = "manage-secrets"
    AUDIT = "audit"
    """To see the audit."""
    ADMINISTER = "administer"
    """All that no other right is for: documents, loggers of workers, the rest of the Ohara API."""


class Role(StrEnum):
    """The role of a caller: a set of rights that every installation has."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rights(self) -> frozenset[Right]:
        """The rights of the role."""
        return RIGHTS[self]

    def has(self, right: Right) -> bool:
        """Returns whether a role has a right: an operator sees, too, and an admin may do everything."""
        return right in RIGHTS[self]


_VIEWER = frozenset({Right.VIEW})
_OPERATOR = _VIEWER | {
    Right.RESTART, Right.CONFIGURE, Right.CHANGE_TOPICS, Right.SEE_RECORDS, Right.SEE_SECRETS, Right.DRAIN,
}  # fmt: skip
RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.VIEWER: _VIEWER, Role.OPERATOR: _OPERATOR, Role.ADMIN: frozenset(Right),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnRole:
    """A role that an access file defines."""

    name: str
    rights: frozenset[Right]

    def __str__(self) -> str:
        return self.name

    def has(self, right: Right) -> bool:
        """Returns whether the role has a right."""
        return right in self.rights


AnyRole: TypeAlias = Role | OwnRole


def token_digest(token: str) -> str:
    """Returns the SHA-256 of a token, hexadecimal: a token is long and random, so that its digest does not reveal
    it."""
    return hashlib.sha256(token.encode()).hexdigest()
