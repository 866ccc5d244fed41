"""Shows and changes the offsets of a sink for REST: those of its consumer group."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

from keelman.connect.java.text import java_text
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.positions.offsets import altered_note
from keelman.kafka.clients import ClientError, low_level_client
from keelman.kafka.groups.changes import HAS_MEMBERS, NONE, GroupChanges
from keelman.kafka.groups.offsets import TopicPart
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.worker.errors import RestError
from keelman.worker.offsets.entries import OffsetEntry

log = get_logger()
Step = Callable[[], Awaitable[None]]
ANSWER_MS = 10_000
LEAVING_SECONDS = 2.0  # seconds to wait for tasks that were stopped a moment ago
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT, _LONG = 31, 63


def parsed_sink_offsets(entries: Sequence[OffsetEntry]) -> dict[TopicPart, int | None]:
    """Returns the offsets in a request's entries; None deletes. Numbers may be text. Raises 400 in Connect's words."""
    parsed: dict[TopicPart, int | None] = {}
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
                    400, "The offset for a sink connector should either be null or contain the key 'kafka_offset'"
                )
            offset = _whole("offset", entry.offset["kafka_offset"], _LONG)
        parsed[java_text(partition["kafka_topic"]), number] = offset
    return parsed


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
    """One sink's group; `client` are the properties of an administrator where it reads.

    To a sink that keeps offsets with its data, a missing offset of the group is an expired offset, and the sink's own
    offset counts. So offsets that are set or reset here for such a sink are noted in the group
    (`engine.sink.positions.offsets`): that note counts.
    """

    def __init__(
        self, connector: str, group: str, client: Mapping[str, str], keeps: Mapping[str, str] | None = None
    ) -> None:
        """`keeps` is the configuration of a connector that keeps offsets with its data; None for any other."""
        self._connector, self._client, self._keeps = connector, client, keeps
        self._changes = GroupChanges(client, group, client_id=f"connector-adminclient-{connector}")

    async def read(self) -> dict[TopicPart, int]:
        """Returns the committed offsets. Raises 500."""
        try:
            return await self._changes.offsets()
        except KeelmanError as error:
            self._failed(f"Failed to list consumer group offsets for connector {self._connector}", error)

    async def alter(self, changes: Mapping[TopicPart, int | None], still: Step) -> None:
        """Commits and deletes offsets; `still` raises when it must not. Raises 500, naming a task that still runs."""
        offsets = {where: offset for where, offset in changes.items() if offset is not None}
        gone = [where for where, offset in changes.items() if offset is None]
        if any(offset < 0 for offset in offsets.values()):
            await still()
            raise RestError(500, f"Failed to modify offsets for sink connector {self._connector}")

        note = self._note()

        async def change() -> None:
            if offsets:
                await self._changes.commit(offsets, note)
            if gone:
                await self._changes.forget(gone)
                if note:
                    await self._changes.commit(dict.fromkeys(gone, NONE), note)

        await self._change("alter", change, still)

    async def reset(self, still: Step) -> None:
        """Deletes the group; `still` raises when it must not. Raises 500, naming a task that still runs."""
        note = self._note()
        noted = dict.fromkeys(await self._partitions(), NONE) if note else {}

        async def change() -> None:
            await self._changes.delete()
            if noted:
                await self._changes.commit(noted, note)

        await self._change("reset", change, still)

    def _note(self) -> str:
        return "" if self._keeps is None else altered_note(time.time_ns() // 1_000_000)

    async def _partitions(self) -> set[TopicPart]:
        """Returns all partitions that the sink may keep offsets for: those of its group, and of all its topics. Raises
        500."""
        assert self._keeps is not None
        partitions = set(await self.read())
        try:
            async with low_level_client(self._client, client_id="sink-topics", timeout_ms=ANSWER_MS) as client:
                cluster = await client.fetch_all_metadata()
        except (KeelmanError, ClientError, OSError) as error:
            self._failed(
                f"Failed to list the topics of connector {self._connector}", Unavailable(f"no broker answers: {error}")
            )
        for topic in Subscription(self._keeps).names(cluster.topics()):
            partitions |= {(topic, number) for number in cluster.partitions_for_topic(topic) or ()}
        return partitions

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
