"""The plugins that the workers of a cluster have, as Connect's REST API lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keelman.cli.client.rest import Where
from keelman.cli.client.target import Target


@dataclass(frozen=True, slots=True)
class Plugin:
    """A connector, converter, transform, predicate or the like; `name` is its class."""

    name: str
    type: str
    version: str

    @property
    def names(self) -> tuple[str, str, str]:
        """Its class, the simple name, and that without Connector."""
        simple = self.name.rpartition(".")[2]
        return self.name, simple, simple.removesuffix("Connector")


async def plugins_of(target: Target, cluster: str) -> Sequence[Plugin]:
    """Those of a worker cluster, connectors first, then by class; of the only cluster when none is named."""
    async with Where(target, cluster).open() as rest:
        found = await rest.ask("GET", "/connector-plugins?connectorsOnly=false")
    listed = [Plugin(one["class"], one["type"], one.get("version") or "") for one in found]
    return sorted(listed, key=lambda one: (one.type not in ("source", "sink"), one.type, one.name))
