"""Keeps the committed offsets of sinks and replays from lapsing, and gives up places of sinks, where no task can do so
any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic as now

from keelman.connect.config.connector_keys import DEAD_LETTERS
from keelman.connect.errors import ConnectError
from keelman.engine.dead_letters.reader import replay_group
from keelman.kafka.groups.keeping import keep_offsets
from keelman.kafka.groups.static_members import remove_static_members
from keelman.kafka.properties.connector_clients import sink_group, sink_group_client, sink_member
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline, supervise
from keelman.runtime.ticks import tick
from keelman.worker.config.client_properties import fencing_client, reads_elsewhere
from keelman.worker.connector_facts import connector_type, is_sink
from keelman.worker.storage.store import WorkerStore

log = get_logger()
LOOK_SECONDS = 5.0
SHARE = 0.25
"""The share of the retention time that may pass between two looks at a group. It leaves the brokers, this worker and
the next leader three quarters of that time to be away."""
AGAIN_SECONDS, TRIES = 10.0, 3
"""The time from a failed look to the next; the number of failures in a row that is worth a warning."""
AT_ONCE = 8
KEEP_SECONDS, GIVE_UP_SECONDS = 20.0, 3.0
Place = tuple[str, str]
"""A connector and its group."""


class SinkGroups:
    """Keeps the offsets of sinks, which brokers forget in time, and gives up the places of ended ones."""

    def __init__(self, store: WorkerStore, leads: Callable[[], bool]) -> None:
        """`leads` tells whether this worker certainly leads: the changer of offsets through REST is the leader, too."""
        self._store = store
        self._leads = leads
        self._due: dict[Place, float] = {}
        self._failed: dict[Place, int] = {}
        self._config_offset = -1
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Runs for ever: the leader has the offsets of each sink kept, in whatever state it is.

        Brokers forget offsets of a group that has had no members for `offsets.retention.minutes`, a week by default:
        sinks that are parked, paused, stopped or failed, or that no worker has.
        """
        while True:
            await tick(LOOK_SECONDS)
            await self.keep()

    async def keep(self) -> None:
        """Renews the offsets of the groups that are due."""
        if not self._leads():
            self._due, self._config_offset = {}, -1
            return
        config, at = self._store.config, now()
        if config.offset == self._config_offset and all(due > at for due in self._due.values()):
            return
        self._config_offset = config.offset
        self._due = {place: self._due.get(place, at) for place in places(self._store)}
        self._failed = {place: times for place, times in self._failed.items() if place in self._due}
        await supervise(*(partial(self._keep, place) for place in due(self._due, at)))

    async def give_up(self, name: str, config: Mapping[str, str], tasks: Sequence[int]) -> None:
        """Gives up the places of tasks that have ended for good, so that their group does not wait for them. Never
        raises."""
        worker = self._store.properties.raw
        group = sink_group(worker, config, name)
        try:
            config = await self._store.secrets.resolve(config)
            properties, group = sink_group_client(worker, config), sink_group(worker, config, name)
            async with deadline(GIVE_UP_SECONDS, DeadlineExceeded("no answer in time")):
                await remove_static_members(properties, group, [sink_member(worker, name, task) for task in tasks])
        except (KeelmanError, ConnectError) as error:  # their sessions lapse in time
            log.info("sink_members_stay", connector=name, group=group, error=str(error))

    async def _keep(self, place: Place) -> None:
        name, group = place
        async with self._at_once:
            connector_config = self._store.config.connectors.get(name)
            if connector_config is None or not self._leads():
                return
            worker = self._store.properties.raw
            try:
                config = await self._store.secrets.resolve(connector_config)
                if group == replay_group(name):
                    properties = fencing_client(worker, config)  # dead letters are where its producers write
                else:
                    properties, group = sink_group_client(worker, config), sink_group(worker, config, name)
                # Changing them needs a group without members.
                late = DeadlineExceeded("no answer in time")
                async with self._store.group_offsets[name], deadline(KEEP_SECONDS, late):
                    kept_offsets = await keep_offsets(properties, group, client_id=f"keep-{group}")
            except (KeelmanError, ConnectError) as error:
                self._failed[place] = self._failed.get(place, 0) + 1
                if self._failed[place] == TRIES:  # before that it may be a coordinator that moves
                    log.warning("sink_offsets_not_kept", connector=name, group=group, error=str(error))
                self._due[place] = now() + AGAIN_SECONDS
                return
        self._failed.pop(place, None)
        self._due[place] = now() + kept_offsets.retention_seconds * SHARE
        if kept_offsets.renewed:
            log.info(
                "sink_offsets_kept", connector=name, group=group, retention_s=round(kept_offsets.retention_seconds)
            )


def places(store: WorkerStore) -> list[Place]:
    """Returns the sinks with their groups, and connectors with dead letters with that of their replays. An unknown
    class may be a sink's; where it is a source's there is no such group."""
    kinds: dict[tuple[str | None, str | None], str] = {}  # to look for an unknown class takes half a millisecond
    groups_due = []
    for name, config in store.config.connectors.items():
        named = config.get("connector.class"), config.get("connector.plugin.version")
        if named not in kinds:
            kinds[named] = connector_type(config)
        if kinds[named] != "source":
            groups_due.append((name, sink_group(store.properties.raw, config, name)))
        if config.get(DEAD_LETTERS, "").strip():
            groups_due.append((name, replay_group(name)))
    return groups_due


def only_sink_group(store: WorkerStore) -> str:
    """Returns the consumer group of the only connector of these workers; empty where they have more than one, where it
    is no sink, or where its group is at other brokers than theirs."""
    worker, connectors = store.properties.raw, store.config.connectors
    if len(connectors) != 1:
        return ""
    ((name, config),) = connectors.items()
    if not is_sink(config) or reads_elsewhere(worker, config):
        return ""
    group = sink_group(worker, config, name)
    return "" if "${" in group else group


def due(times: Mapping[Place, float], at: float) -> list[Place]:
    """Returns the places that are due, those that have waited longest first."""
    return sorted((place for place, when in times.items() if when <= at), key=lambda place: (times[place], place))
