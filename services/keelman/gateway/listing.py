"""Lists of connectors: what workers have reported, and what this gateway has written a moment ago.

Workers are asked only where there are no reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_UNSPECIFIED, Connector, ConnectorState
from keelman.api.connect.v1.connector_service_pb2 import ListConnectorsRequest, ListConnectorsResponse
from keelman.connect.config.secret_keys import shown
from keelman.gateway.state import State
from keelman.rpc.pages import page
from keelman.workers.rest.connectors import Connectors

FRESH_SECONDS = 10.0  # so long at most it takes until a report says what was written


@dataclass(slots=True)
class Written:
    """What was created and deleted through this gateway a moment ago."""

    clock: Callable[[], float] = time.monotonic
    _newest: dict[tuple[str, str], tuple[float, Connector | None]] = field(default_factory=dict)

    def note(self, cluster: str, name: str, connector: Connector | None) -> None:
        """A connector was created or changed, or, with None, deleted."""
        self._newest.pop((cluster, name), None)
        self._newest[cluster, name] = self.clock(), connector

    def recent(self) -> dict[tuple[str, str], Connector | None]:
        """What may not be reported yet."""
        old = self.clock() - FRESH_SECONDS
        for key in [k for k, (at, _) in self._newest.items() if at < old]:
            del self._newest[key]
        return {key: connector for key, (_, connector) in self._newest.items()}


class Listing:
    """Answers ListConnectors."""

    def __init__(self, state: State, connectors: Connectors, written: Written) -> None:
        self._state = state
        self._connectors = connectors
        self._written = written

    async def page(self, request: ListConnectorsRequest) -> ListConnectorsResponse:
        """A page of connectors. Raises NotFound for an unknown worker cluster."""
        answer = await self._state.connector_reports(request)
        recent = self._written.recent()
        if not answer.unreported and not recent:
            return ListConnectorsResponse(connectors=answer.connectors, next_page_token=answer.next_page_token)
        reported = await self._state.all_connector_reports(request.worker_cluster)
        asked = await self._connectors.all(answer.unreported)
        known = {(c.worker_cluster, c.name): c for c in (*reported, *(hidden(c) for c in asked.connectors))}
        unreported = {*answer.unreported}
        for (cluster, name), connector in recent.items():
            if cluster in unreported or request.worker_cluster not in ("", cluster):
                continue
            if connector is None:
                known.pop((cluster, name), None)
            else:
                known.setdefault((cluster, name), hidden(connector))
        found = [c for c in known.values() if is_in(c, request.state)]
        # NUL sorts before every letter of a name: worker cluster first, then connector.
        cut, token = page(found, lambda c: f"{c.worker_cluster}\0{c.name}", request.page_size, request.page_token)
        return ListConnectorsResponse(connectors=cut, next_page_token=token, unreachable=asked.unreachable)


def is_in(connector: Connector, state: ConnectorState.ValueType) -> bool:
    """Whether it, or a task of it, is in this state; unspecified is any."""
    return state in (CONNECTOR_STATE_UNSPECIFIED, connector.state, *(t.state for t in connector.tasks))


def hidden(connector: Connector) -> Connector:
    """The connector as lists show it."""
    config = shown(connector.config)
    made = Connector()
    made.CopyFrom(connector)
    made.config.clear()
    made.config.update(config)
    del made.notes[:]
    made.etag = made.uid = ""
    return made
