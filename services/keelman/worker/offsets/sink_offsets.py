"""Offsets of a sink as REST tells and changes them: those of its consumer group."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

from keelman.connect.java.text import java_text
from keelman.kafka.group_changes import HAS_MEMBERS, GroupChanges, TopicPart
from keelman.model.errors import KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger
from keelman.worker.errors import RestError
from keelman.worker.offsets.entries import OffsetEntry

log = get_logger()
Step = Callable[[], Awaitable[None]]
LEAVING_SECONDS = 2.0  # so long tasks that were stopped a moment ago are waited for
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT, _LONG = 31, 63


def parsed_sink_offsets(entries: Sequence[OffsetEntry]) -> dict[TopicPart, int | None]:
    """What the entries of a request mean; None deletes. Numbers may be text. Raises 400 in Connect's words."""
    found: dict[TopicPart, int | None] = {}
    for entry in entries:
        partition = entry.partition
        if partition is None:
            raise RestError(400, "The partition for a sink connector offset cannot be null or missing")
        if not {"kafka_topic", "kafka_partition"} <= partition.keys():
            raise RestError(
                400,
                "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'",
            )
        if partition["kafka_topic"] is None:
            raise RestError(400, "Kafka topic names must be valid strings and may not be null")
        if partition["kafka_partition"] is None:
            raise RestError(400, "Kafka partitions must be valid numbers and may not be null")
        number = _whole("partition", partition["kafka_partition"], _INT)
        offset = None
        if entry.offset is not None:
            if "kafka_offset" not in entry.offset:
                raise RestError(
                    400,
                    "The offset for a sink connector should either be null or contain the key 'kafka_offset'",
                )
            offset = _whole("offset", entry.offset["kafka_offset"], _LONG)
        found[java_text(partition["kafka_topic"]), number] = offset
    return found


def _whole(what: str, value: Any, bits: int) -> int:
    text = java_text(value)
    number = int(text) if _INTEGER.fullmatch(text) and len(text) <= bits else None
    if number is None or not -(1 << bits) <= number < 1 << bits:
        raise RestError(
            400,
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{text}'. "
            f"{what.capitalize()} values for sink connectors need to be integers.",
        )
    return number


class SinkOffsets:
    """One sink's group; `client` are the properties of an administrator where it reads."""

    def __init__(self, connector: str, group: str, client: Mapping[str, str]) -> None:
        self._connector = connector
        self._changes = GroupChanges(client, group, client_id=f"connector-adminclient-{connector}")

    async def read(self) -> dict[TopicPart, int]:
        """The committed offsets. Raises 500."""
        try:
            return await self._changes.offsets()
        except KeelmanError as error:
            self._failed(f"Failed to list consumer group offsets for connector {self._connector}", error)

    async def alter(self, wanted: Mapping[TopicPart, int | None], still: Step) -> None:
        """Commits and deletes offsets; `still` raises when it must not. Raises 500, naming a task that still runs."""
        kept = {where: offset for where, offset in wanted.items() if offset is not None}
        gone = [where for where, offset in wanted.items() if offset is None]
        if any(offset < 0 for offset in kept.values()):
            await still()
            raise RestError(500, f"Failed to modify offsets for sink connector {self._connector}")

        async def change() -> None:
            if kept:
                await self._changes.commit(kept)
            if gone:
                await self._changes.forget(gone)

        await self._change("alter", change, still)

    async def reset(self, still: Step) -> None:
        """Deletes the group; `still` raises when it must not. Raises 500, naming a task that still runs."""
        await self._change("reset", self._changes.delete, still)

    async def _change(self, verb: str, change: Step, still: Step) -> None:
        backoff, until = Backoff(first=0.1, most=0.5), time.monotonic() + LEAVING_SECONDS
        while True:
            await still()
            try:
                return await change()
            except KeelmanError as error:
                if error.reason != HAS_MEMBERS or time.monotonic() > until:
                    self._refused(verb, error)
            await asyncio.sleep(backoff.next())

    def _refused(self, verb: str, error: KeelmanError) -> NoReturn:
        message = f"Failed to {verb} consumer group offsets for connector {self._connector}"
        if error.reason == HAS_MEMBERS:
            message += (
                " either because its tasks haven't stopped completely yet or the connector was resumed before the "
                f"request to {verb} its offsets could be successfully completed. If the connector is in a stopped "
                "state, this operation can be safely retried. If it doesn't eventually succeed, the Connect cluster "
                "may need to be restarted to get rid of the zombie sink tasks."
            )
        self._failed(message, error)

    def _failed(self, message: str, error: KeelmanError) -> NoReturn:
        log.warning("sink_offsets_failed", connector=self._connector, error=error.message)
        raise RestError(500, message) from None
