"""The groups that sinks read in, where no task can look after them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from keelman.connect.errors import ConnectError
from keelman.kafka.client_properties import sink_group, sink_member
from keelman.kafka.group_changes import GroupChanges
from keelman.kafka.static_members import remove_static_members
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.worker.parked.parking import Parking
from keelman.worker.properties.client_properties import sink_group_client
from keelman.worker.tables.store import Store
from keelman.worker.tasks.tickets import is_sink

log = get_logger()
LOOK_SECONDS = 600.0
GIVE_UP_SECONDS = 3.0


class SinkGroups:
    """Keeps the offsets of parked sinks, which brokers forget in time, and gives up the places of ended ones."""

    def __init__(self, store: Store, parking: Parking) -> None:
        self._store = store
        self._parking = parking

    async def run(self) -> None:
        """Runs for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name in self._parking.long_parked():
                config = self._store.config.connectors.get(name)
                if config is not None and is_sink(config):
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
            kept = await GroupChanges(properties, group, client_id=f"keep-{group}").write_again()
            log.info("sink_offsets_kept", connector=name, group=group, partitions=kept)
        except (KeelmanError, ConnectError) as error:  # tomorrow again: brokers keep offsets for a week
            log.warning("sink_offsets_not_kept", connector=name, group=group, error=str(error))
