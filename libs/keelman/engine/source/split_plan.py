"""Writes the plan of a task that is split before its parts begin, and takes it back when they have ended."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.copy.v1.run_order_pb2 import BulkPart
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connect import contract
from keelman.connect.config.copying_keys import MAX_SLOTS
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Connector
from keelman.connect.records import Offset
from keelman.engine.producing.producer import RunProducer
from keelman.engine.source.split import plan_offset, plan_partition, planned_parts


class SplitPlan:
    """The plan as the task's own copy run keeps it, exactly-once only. Used between transactions, by the run's
    thread."""

    def __init__(self, ticket: StartTicket, producer: RunProducer, committed: CommittedOffsets) -> None:
        self._ticket = ticket
        self._producer = producer
        self._committed = committed
        self._partition = plan_partition(ticket.task)
        self.parts: list[BulkPart] = []

    def split(self, connector: type[Connector], config: Mapping[str, str]) -> Mapping[str, str]:
        """Splits the task if its backlog is worth it. Returns the configuration for its own reader.

        The plan is committed before the parts are announced. A plan that a former run has left is taken back: the
        worker has fenced its producers before it confirmed this run.
        """
        bulk = self._ticket.bulk
        parts: list[dict[str, str]] = []
        slots = min(bulk.slots, MAX_SLOTS)
        if slots > 1:
            parts = contract.SPLIT.of(connector.split, config, self._committed.offset, slots=slots, least=bulk.least)
        if not parts:
            self.take_back()
            return config
        self._commit(plan_offset(min(len(parts), slots)))
        self.parts = [BulkPart(task_config=part) for part in parts[1:]]
        return {**config, **parts[0]}

    def take_back(self) -> None:
        """No producer but the task's own can commit any more."""
        if planned_parts(self._committed.offset(self._partition)):
            self._commit(None)
        self.parts = []

    def _commit(self, plan: Offset | None) -> None:
        self._producer.commit(self._ticket.offset_topic, [self._committed.record(self._partition, plan)])
        self._committed.note(self._partition, plan)
