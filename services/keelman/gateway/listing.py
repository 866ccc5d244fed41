"""Lists connectors, from the workers' reports and from this gateway's own recent writes.

Workers are called only if there are no reports. The cost of a page grows with its connectors and the recent writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_UNSPECIFIED, Connector
from keelman.api.connect.v1.connector_service_pb2 import ListConnectorsRequest, ListConnectorsResponse
from keelman.connect.config.secret_keys import shown
from keelman.gateway.state import State
from keelman.rpc.pages import connector_key, key_of, key_parts, page_limit, token_for
from keelman.workers.connector_messages import is_in
from keelman.workers.rest.connectors import RestConnectors

FRESH_SECONDS = 10.0  # the longest time until a report contains a write


@dataclass(slots=True)
class RecentWrites:
    """Remembers the connectors that were recently created, changed or deleted through this gateway."""

    clock: Callable[[], float] = time.monotonic
    _newest: dict[tuple[str, str], tuple[float, Connector | None]] = field(default_factory=dict)

    def note(self, cluster: str, name: str, connector: Connector | None) -> None:
        """Remembers that a connector was created or changed, or, with None, deleted."""
        self._newest.pop((cluster, name), None)
        self._newest[cluster, name] = self.clock(), connector

    def recent(self) -> dict[tuple[str, str], Connector | None]:
        """Returns the writes that may not be reported yet."""
        old = self.clock() - FRESH_SECONDS
        for key in [k for k, (at, _) in self._newest.items() if at < old]:
            del self._newest[key]
        return {key: connector for key, (_, connector) in self._newest.items()}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of keys of a page: after the last key of the previous page, up to the last reported key on it."""

    after: str
    end: str
    """Empty for the last page, which has no end."""

    def has(self, key: str) -> bool:
        """Tells whether a connector with this key belongs to the page."""
        return key > self.after and (not self.end or key <= self.end)

    def reaches(self, cluster: str) -> bool:
        """Tells whether connectors of a worker cluster may belong to the page."""
        return key_parts(self.after)[0] <= cluster and (not self.end or cluster <= key_parts(self.end)[0])


class ConnectorListing:
    """Answers ListConnectors."""

    def __init__(self, state: State, connectors: RestConnectors, written: RecentWrites) -> None:
        self._state = state
        self._connectors = connectors
        self._written = written

    async def page(self, request: ListConnectorsRequest) -> ListConnectorsResponse:
        """Returns a page of connectors. Raises NotFound for an unknown worker cluster."""
        answer = await self._state.connector_reports(request)
        stretch = KeyRange(key_of(request.page_token), key_of(answer.next_page_token))
        by_key = {connector_key(member.worker_cluster, member.name): member for member in answer.connectors}
        unreported = set(answer.unreported)
        answered = await self._connectors.all(sorted(filter(stretch.reaches, unreported)))
        for member in answered.connectors:
            if is_in(member, request.state):
                by_key[connector_key(member.worker_cluster, member.name)] = hidden(member)
        for (cluster, name), connector in self._written.recent().items():
            if connector is None and cluster not in unreported:
                by_key.pop(connector_key(cluster, name), None)
        for member in await self._unreported_yet(request, stretch, by_key, unreported):
            by_key[connector_key(member.worker_cluster, member.name)] = hidden(member)
        keys = sorted(filter(stretch.has, by_key))
        cut, token = keys[: page_limit(request.page_size)], answer.next_page_token
        if len(cut) < len(keys):
            token = token_for(cut[-1])
        return ListConnectorsResponse(
            connectors=[by_key[key] for key in cut], next_page_token=token, unreachable=answered.unreachable
        )

    async def _unreported_yet(
        self, request: ListConnectorsRequest, stretch: KeyRange, by_key: dict[str, Connector], unreported: set[str]
    ) -> Sequence[Connector]:
        """Returns the recent writes that belong to this page and are in no report yet."""
        written = [
            connector
            for (cluster, name), connector in self._written.recent().items()
            if connector is not None
            and cluster not in unreported
            and request.worker_cluster in ("", cluster)
            and stretch.has(key := connector_key(cluster, name))
            and key not in by_key
            and is_in(connector, request.state)
        ]
        if not written or request.state == CONNECTOR_STATE_UNSPECIFIED:
            return written
        reported = await self._state.reported_connectors(written)  # reported, but in other states
        return [member for member in written if (member.worker_cluster, member.name) not in reported]


def hidden(connector: Connector) -> Connector:
    """Returns a copy of a connector for lists: with hidden secret values, without notes, etag and uid."""
    config = shown(connector.config)
    shown_connector = Connector()
    shown_connector.CopyFrom(connector)
    shown_connector.config.clear()
    shown_connector.config.update(config)
    del shown_connector.notes[:]
    shown_connector.etag = shown_connector.uid = ""
    return shown_connector
