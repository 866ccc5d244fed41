"""The worker's only durable state: its three topics, with notices of their changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from keelman.connect.policy.judging import PolicyJudge
from keelman.connectors.registry import full_name
from keelman.kafka.tables.following import TopicTables
from keelman.runtime.supervise import first_of, supervise
from keelman.worker.config.secrets import Secrets
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_topic import ConfigTopic, OnLevel
from keelman.worker.storage.offset_topic import OffsetTopic
from keelman.worker.storage.status_state import CONNECTOR_KEY, work_of
from keelman.worker.storage.status_topic import StatusTopic
from keelman.worker.storage.topics import READ_SECONDS, KafkaTopics, Topics
from keelman.workers.properties.typed import WorkerProperties


@dataclass(frozen=True, slots=True)
class StoreCallbacks:
    """A store's questions and notices to its worker. None may block or raise."""

    may_write: Callable[[], bool]
    """Whether this worker still has its place in the group: without it nothing is written that a successor could have
    written otherwise since."""
    on_change: Callable[[], None]
    """Called after `change_sets` were notified, and after each status of a connector, not of a task."""
    on_level: OnLevel
    """Called with logger and level that all workers are ordered to have, not with orders of before `read_all`."""


class WorkerStore:
    """Open it with `open`; `run()` must run inside the block."""

    def __init__(
        self, properties: WorkerProperties, topics: Topics, *, worker_id: str, callbacks: StoreCallbacks
    ) -> None:
        self.properties = properties
        self.judge = PolicyJudge(properties.raw, full_name)
        """Judges what connectors may be, by the worker's policies."""
        self.secrets = Secrets(properties.raw, self._value_changed)
        self.group_offsets: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By connector: held while offsets of a sink's group are changed from outside, or kept: one at a time does."""
        self.change_sets: list[ChangeSet] = []
        """Notified of connectors that changed: configuration, target state, a value that it refers to, own status."""
        self.status_change_sets: list[ChangeSet] = []
        """Notified of the connectors that have a new status, of theirs or of a task of theirs."""
        self._on_change = callbacks.on_change
        self.config_topic = ConfigTopic(
            properties,
            topics,
            worker_id=worker_id,
            may_write=callbacks.may_write,
            on_record=self.changed_about,
            on_level=callbacks.on_level,
        )
        self.offset_topic = OffsetTopic(properties, topics)
        self.status_topic = StatusTopic(
            properties, topics, self.config_topic, may_write=callbacks.may_write, on_record=self._status_changed
        )
        self._follow: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.config = self.config_topic.state
        self.offsets = self.offset_topic.state
        self.statuses = self.status_topic.state

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(
        properties: WorkerProperties, *, worker_id: str, callbacks: StoreCallbacks
    ) -> AsyncIterator[WorkerStore]:
        """Creates missing topics, refuses wrong ones (FailedPrecondition) and opens the clients."""
        client_id, raw = f"{properties.group_id}-{worker_id}", properties.raw
        async with contextlib.AsyncExitStack() as stack:
            topics = await stack.enter_async_context(KafkaTopics.open(properties, client_id=client_id))
            store = WorkerStore(properties, topics, worker_id=worker_id, callbacks=callbacks)
            stack.push_async_callback(store.config_topic.fencing.close)
            tables = [topic.table for topic in (store.config_topic, store.offset_topic, store.status_topic)]
            # Statuses are in no transaction: read committed they are the same.
            together = TopicTables(
                tables,
                raw,
                client_id=client_id,
                read_committed=properties.fenced,
                calm=[store.offset_topic.table.topic],  # written by copy runs all the time
            )
            opened = await stack.enter_async_context(together.open())
            store._follow = [opened.follow, topics.watch]
            yield store

    async def run(self) -> None:
        """Follows the topics and writes statuses, until cancelled."""
        await supervise(*self._follow, self.status_topic.writer.run, self.secrets.run)

    async def read_all(self) -> None:
        """Reads the three topics to their ends: from then on the worker has the whole state.

        Raises DeadlineExceeded, Unavailable, and at once PermissionDenied.
        """
        for topic in (self.config_topic, self.offset_topic, self.status_topic):
            await first_of(topic.table.read_to_end(seconds=READ_SECONDS), topic.table.kept_out())
        self.config_topic.live = True

    @property
    def known_at(self) -> float:
        """The time, by the monotonic clock, up to which this worker knows the configurations and statuses."""
        return min(self.config_topic.heard_at, self.status_topic.table.heard_at)

    def committed(self, connector: str, offsets: Mapping[str, str]) -> None:
        """Takes the offsets that a copy run reports as committed; here the offset topic has them already."""

    def changed_about(self, connector: str) -> None:
        """Notifies the change sets that something about this connector has changed."""
        self._notify(connector)
        self._on_change()

    def _notify(self, connector: str) -> None:
        for change_set in self.change_sets:
            change_set.add((connector,))

    def _value_changed(self) -> None:
        for change_set in self.change_sets:
            change_set.add_all()
        self._on_change()

    def _status_changed(self, key: str) -> None:
        if (work := work_of(key)) is not None:
            for change_set in self.status_change_sets:
                change_set.add((work.connector,))
        if key.startswith(CONNECTOR_KEY):
            self.changed_about(key.removeprefix(CONNECTOR_KEY))
