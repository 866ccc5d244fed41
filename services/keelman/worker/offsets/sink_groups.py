"""Keeps the committed offsets of sinks from lapsing, and gives up places of theirs, where no task can look after
that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic as now

from keelman.connect.errors import ConnectError
from keelman.kafka.groups.changes import HAS_MEMBERS, GroupChanges
from keelman.kafka.groups.static_members import remove_static_members
from keelman.kafka.properties.connector_clients import sink_group, sink_member
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.worker.config.client_properties import reads_elsewhere, sink_group_client
from keelman.worker.connector_facts import is_sink
from keelman.worker.storage.store import Store

log = get_logger()
LOOK_SECONDS = 600.0
DAY_SECONDS = 86_400.0
GIVE_UP_SECONDS = 3.0


class SinkGroups:
    """Keeps the offsets of sinks, which brokers forget in time, and gives up the places of ended ones."""

    def __init__(self, store: Store, leads: Callable[[], bool]) -> None:
        """`leads` says whether this worker leads for certain: who changes offsets through REST is the leader, too."""
        self._store = store
        self._leads = leads
        self._kept_at: dict[str, float] = {}

    async def run(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Runs for ever: the leader commits the offsets of each sink again once a day, in whatever state it is.

        Brokers forget offsets of a group that has had no members for `offsets.retention.minutes`, a week by default:
        sinks that are parked, paused, stopped or failed.
        """
        while True:
            await asyncio.sleep(look_seconds)
            await self.keep()

    async def keep(self) -> None:
        """Commits the offsets again that it is time for."""
        connectors = self._store.config.connectors
        self._kept_at = {name: at for name, at in self._kept_at.items() if name in connectors and self._leads()}
        for name in due((name for name, config in connectors.items() if is_sink(config)), self._kept_at, now()):
            if not self._leads():
                return
            if (config := connectors.get(name)) is not None:
                async with self._store.group_offsets:
                    await self._keep(name, config)

    async def give_up(self, name: str, config: Mapping[str, str], tasks: Sequence[int]) -> None:
        """These tasks have ended and come back no more: nobody waits for them in their group. Never raises."""
        worker = self._store.properties.raw
        group = sink_group(worker, config, name)
        try:
            config = await self._store.secrets.resolve(config)
            properties, group = sink_group_client(worker, config), sink_group(worker, config, name)
            async with deadline(GIVE_UP_SECONDS, DeadlineExceeded("no answer in time")):
                await remove_static_members(properties, group, [sink_member(worker, name, task) for task in tasks])
        except (KeelmanError, ConnectError) as error:  # their sessions lapse in time
            log.info("sink_members_stay", connector=name, group=group, error=str(error))

    async def _keep(self, name: str, config: Mapping[str, str]) -> None:
        worker = self._store.properties.raw
        group = sink_group(worker, config, name)
        try:
            config = await self._store.secrets.resolve(config)
            properties, group = sink_group_client(worker, config), sink_group(worker, config, name)
            kept = await GroupChanges(properties, group, client_id=f"keep-{group}").write_again(self._leads)
            log.info("sink_offsets_kept", connector=name, group=group, partitions=kept)
        except (KeelmanError, ConnectError) as error:
            if getattr(error, "reason", "") != HAS_MEMBERS:  # it runs, and offsets of its members are not forgotten
                log.warning("sink_offsets_not_kept", connector=name, group=group, error=str(error))
                return
        self._kept_at[name] = now()


def only_sink_group(store: Store) -> str:
    """The consumer group of the only connector of these workers; empty where they have more than one, where it is no
    sink, or where its group is at other brokers than theirs."""
    worker, connectors = store.properties.raw, store.config.connectors
    if len(connectors) != 1:
        return ""
    ((name, config),) = connectors.items()
    if not is_sink(config) or reads_elsewhere(worker, config):
        return ""
    group = sink_group(worker, config, name)
    return "" if "${" in group else group


def due(names: Iterable[str], kept_at: Mapping[str, float], at: float) -> list[str]:
    """Those of the sinks whose offsets were not committed again for a day."""
    return sorted(name for name in names if at - kept_at.get(name, float("-inf")) >= DAY_SECONDS)
