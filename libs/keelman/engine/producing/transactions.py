"""Commits a source's records and offsets: in one transaction at a time, or without any for at-least-once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from keelman.engine.failure import RunFailure
from keelman.engine.producing.producer import OffsetRecord, RunProducer
from keelman.kafka.batches.producer import EPOCH_EACH
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

_log = get_logger()

SLOW_COMMIT_SECONDS = 1.0
COMMIT_SECONDS = 5.0
ABORT_SECONDS = 2.0


def outlived(seconds: float, most: float) -> RunFailure:
    """Returns the failure for a transaction that was open for `seconds`, and may be for `most`."""
    return RunFailure(
        "TASK_FAILED",
        f"a transaction was open for {seconds:.0f} s, and may be for {most:g} s (transaction.timeout.ms):"
        " it is aborted, and all of it is read again. Raise producer.override.transaction.timeout.ms, up to the"
        " brokers' transaction.max.timeout.ms, or have the source give less at a time",
    )


class TransactionalProducer(RunProducer):
    """Commits records and offsets in one transaction. After any failure the producer is unusable."""

    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Sends the offsets and commits.

        Where transactions share an epoch, a commit that was slow or saw its coordinator disconnect ends the producer
        even when it succeeded: a repeated EndTxn could meet the next transaction. The caller reports a RunFailure after
        a success by `committed`.
        """
        self.committed = False
        self._post_together([*self._held(), *self._offsets(offset_topic, offsets)], commits=True)
        self._wait(self._commit())
        self._notify_delivered()

    @property
    def open_seconds(self) -> float:
        """The time-out of a transaction."""
        return self._options.settings.transaction_timeout_ms / 1000

    def abandon(self) -> None:
        """Aborts the open transaction at its connector's request; the producer stays usable.

        The transaction has no offset records, for offsets are sent only with a commit.
        """
        self._drop()
        self._wait(self._end(commit=False))
        self._news.clear()
        self._done_bytes = self._sent_bytes  # dropped records will not be reported as delivered

    def abort(self) -> None:
        """Aborts an open transaction, so that readers of its partitions need not wait for its time-out."""
        self._drop()
        if self._producer is not None:
            try:
                KAFKA_LOOP.call(self._abort())
            except Exception as error:  # the run already has a reason to end
                _log.info("not_aborted", why=repr(error), note="the next producer of this task does it")

    async def _commit(self) -> None:
        await self._made.flush()
        if not self._made.is_ending:
            self._control.beat()  # a slot that was frozen and given up must not commit when it wakes
        await self._end(commit=True)

    async def _abort(self) -> None:
        async with asyncio.timeout(ABORT_SECONDS):
            await self._made.end(commit=False)

    async def _end(self, *, commit: bool) -> None:
        what = "a commit" if commit else "an abort"
        losses, started = self._made.coordinator_losses, time.monotonic()
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await self._made.end(commit=commit)
        except TimeoutError:
            raise RunFailure("BROKER_LOST", f"no answer to {what} within {COMMIT_SECONDS:.0f} s") from None
        took = time.monotonic() - started
        self.committed = commit
        if self._made.transaction_version >= EPOCH_EACH:
            return
        if took > SLOW_COMMIT_SECONDS:
            raise RunFailure("COMMIT_SLOW", f"{what} took {took:.1f} s; the producer is not used again")
        if self._made.coordinator_losses != losses:
            raise RunFailure("BROKER_LOST", "the transaction coordinator disconnected; the producer is not used again")


class AtLeastOnceProducer(RunProducer):
    """At-least-once: records first, then their offsets, each delivered before the next step."""

    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Waits for the records, then for the offsets."""
        self.committed = False
        self._deliver(self._held())
        batches = self._offsets(offset_topic, offsets)
        if batches:
            self._deliver(batches)
        self.committed = True
        self._notify_delivered()

    def abort(self) -> None:
        """Does nothing: sent records stay; without their offsets they will be sent again."""
