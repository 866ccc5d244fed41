"""A caller of the gateway with its rights. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from keelman.model.access.roles import AnyRole, Right, Role


@dataclass(frozen=True, slots=True)
class GatewayCaller:
    """A caller. `clusters`: the worker clusters that its role covers, None for the whole installation. `expire_time`:
    the end of its credentials, None for no end."""

    name: str
    role: AnyRole
    clusters: frozenset[str] | None = None
    expire_time: datetime | None = None

    def has(self, right: Right) -> bool:
        """Tells whether its role has the right, for some worker clusters at least."""
        return self.role.has(right)

    def sees(self, cluster: str) -> bool:
        """Tells whether its role covers this worker cluster; "" stands for resources of no worker cluster."""
        return self.clusters is None or cluster in self.clusters

    @property
    def is_limited(self) -> bool:
        """Whether its role covers only some worker clusters."""
        return self.clusters is not None


EVERYBODY = GatewayCaller("everybody", Role.ADMIN)
"""The caller for a gateway with open access."""
CALLER = "keelman.caller"
"""The key in the scope of an HTTP request for its caller, if the guard has identified it."""


def caller_of(scope: Mapping[str, Any]) -> GatewayCaller:
    """Returns the caller of a request."""
    caller: GatewayCaller = scope.get(CALLER, EVERYBODY)
    return caller
