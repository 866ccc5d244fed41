"""Hands a task loop the rows that Spark has given to this process: one part of a data set, as Arrow batches.

They come through the pipe that Spark's worker process reads, as fast as they are taken. Only one reader can have them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from keelman.connect.errors import RetriableConnectError

AHEAD = 2  # batches that wait beside the current one


class PartRows:
    """Batches of one part. A thread of its own waits for Spark: the first rows of a query may take minutes."""

    def __init__(self, batches: Iterable[Any]) -> None:
        """`batches` are pyarrow.RecordBatch."""
        self._queue: queue.Queue[tuple[Any, Exception | None]] = queue.Queue(AHEAD)
        self._batches = iter(batches)
        self.ended = False
        threading.Thread(target=self._pump, name="given-rows", daemon=True).start()

    def next(self, seconds: float) -> Any | None:
        """The next batch, None when there is none in time or, with `ended` set, none any more.

        Raises RetriableConnectError when Spark could not read on.
        """
        if self.ended:
            return None
        try:
            batch, error = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if error is not None:
            raise RetriableConnectError(f"Spark stopped giving rows: {error}") from error
        self.ended = batch is None
        return batch

    def _pump(self) -> None:
        try:
            for batch in self._batches:
                if batch.num_rows:
                    self._queue.put((batch, None))
        except Exception as error:
            self._queue.put((None, error))
        else:
            self._queue.put((None, None))


_given: list[Iterator[Any]] = []


def offer_rows(batches: Iterable[Any]) -> None:
    """This process has the rows of a part. Called once, by the slot host, before there is any copy run."""
    _given.append(iter(batches))


def claim_rows() -> PartRows:
    """The rows of this process. Raises RetriableConnectError when it has none, or they were taken before."""
    if not _given:
        raise RetriableConnectError("this slot has no rows of Spark's to read")
    return PartRows(_given.pop())
