"""The groups that sinks read in, where no task can look after them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from keelman.kafka.group_offsets import write_again
from keelman.model.errors import KeelmanError
from keelman.runtime.logging import get_logger
from keelman.worker.client_properties import sink_group_client
from keelman.worker.parking import Parking
from keelman.worker.store import Store
from keelman.worker.tickets import is_source

log = get_logger()
LOOK_SECONDS = 600.0


class SinkGroups:
    """Keeps the offsets of parked sinks, which brokers forget when they are not written for long."""

    def __init__(self, store: Store, parking: Parking) -> None:
        self._store = store
        self._parking = parking

    async def run(self) -> None:
        """Runs for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name in self._parking.long_parked():
                config = self._store.config.connectors.get(name)
                if config is not None and not is_source(config):
                    await self._keep(name, config)

    async def _keep(self, name: str, config: Mapping[str, str]) -> None:
        properties = sink_group_client(self._store.properties.raw, config)
        group = group_of(name, config)
        try:
            kept = await write_again(properties, group, client_id=f"keep-{group}")
            log.info("sink_offsets_kept", connector=name, group=group, partitions=kept)
        except KeelmanError as error:  # tomorrow again: brokers keep offsets for a week
            log.warning("sink_offsets_not_kept", connector=name, group=group, error=error.message)


def group_of(name: str, config: Mapping[str, str]) -> str:
    """The consumer group of a sink's tasks."""
    return config.get("consumer.override.group.id", "").strip() or f"connect-{name}"
