"""A caller of the gateway with what it may do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keelman.model.access.roles import Right, Role


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `clusters`: the worker clusters that it has its role for, None for the whole installation."""

    name: str
    role: Role
    clusters: frozenset[str] | None = None

    def has(self, right: Right) -> bool:
        """Whether its role has the right, somewhere at least."""
        return self.role.has(right)

    def sees(self, cluster: str) -> bool:
        """Whether its role is for this worker cluster; "" is what belongs to none."""
        return self.clusters is None or cluster in self.clusters

    @property
    def is_limited(self) -> bool:
        """Whether it has its role for some worker clusters alone."""
        return self.clusters is not None


EVERYBODY = Caller("everybody", Role.ADMIN)
"""The caller of a gateway that asks nobody who it is."""
CALLER = "keelman.caller"
"""Of the scope of an HTTP request: who sent it, where the guard has asked."""


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Who sent a request."""
    found: Caller = scope.get(CALLER, EVERYBODY)
    return found
