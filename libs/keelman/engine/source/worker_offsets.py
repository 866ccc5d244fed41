"""Writes a connector's offsets to the worker's own offset topic, too: for tools that look there, and for a later return
to that topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keelman.engine.best_effort_writer import BestEffortWriter
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.producing.producer import OffsetRecord
from keelman.runtime.logs.logging import get_logger

TOMBSTONE_SECONDS = 10.0
CLOSE_SECONDS = 2.0

_log = get_logger()


class WorkerOffsets:
    """Writes offsets to the worker's topic in no transaction, best effort. One thread uses it.

    Connect's order: an offset that is deleted is deleted from the worker's topic first, since that is read for offsets
    that the connector's topic lacks; all others are written there after they are committed in the connector's topic.
    """

    def __init__(
        self, topic: str, properties: Mapping[str, str], control: Control, connector: str, client_id: str
    ) -> None:
        """`properties` are Java's properties of the worker's own producers. Connects with the first offset."""
        self._topic = topic
        self._control = control
        self._log = _log.bind(connector=connector, topic=topic)
        self._writer = BestEffortWriter(properties, topic, client_id=client_id, failed=self._failed)
        self._failure: str | None = None
        self._logged = False

    def before_commit(self, offsets: Sequence[OffsetRecord]) -> None:
        """Deletes offsets that the commit deletes. Raises RunFailure: an offset that stayed here would come back."""
        deleted = [key for key, value in offsets if value is None]
        if not deleted:
            return
        self._failure = None
        self._writer.write([(key, None) for key in deleted])
        done = self._writer.flush(TOMBSTONE_SECONDS, self._control.beat)
        if self._failure is not None or not done:
            reason = self._failure or f"no answer in {TOMBSTONE_SECONDS:.0f} s"
            raise RunFailure("BROKER_LOST", f"offsets were not deleted from the worker's topic {self._topic}: {reason}")

    def after_commit(self, offsets: Sequence[OffsetRecord]) -> None:
        """Writes committed offsets; logs a failure once, for the connector's own topic has them."""
        self._writer.write([(key, value) for key, value in offsets if value is not None])

    def close(self) -> None:
        """Waits briefly for the last writes."""
        self._writer.close(CLOSE_SECONDS)

    def _failed(self, reason: str) -> None:
        self._failure = reason
        if not self._logged:
            self._logged = True
            self._log.warning("worker_offsets_not_written", error=reason, note="the connector's own topic has them")
