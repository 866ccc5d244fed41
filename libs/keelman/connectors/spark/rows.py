"""The rows of one part of a data set as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, Offset, Partition, SourceBatch
from keelman.engine.slot.part_rows import PartRows, claim_rows

WAIT_SECONDS = 0.25


class SparkRows(Reader):
    """Reads what Spark gives to this slot: columns `value` and, where there are any, `key`, `topic`, `partition` and
    `headers`, as Spark's own Kafka sink takes them. Payloads are sent as they are, whatever the converters."""

    lag_unit = "records"
    limits_bytes = True

    def __init__(
        self,
        topic: str,
        partition: Partition,
        split: str,
        *,
        name: str,
        read: int,
        done: bool,
        ordered: bool,
    ) -> None:
        """`read` rows of it are committed, all when `done`. Without `ordered` the part is one transaction."""
        self._topic, self._partition, self._split, self._name = topic, partition, split, name
        self._ordered = ordered
        self._skip = read
        self._row = 0
        self._done = done
        self._ending = False
        self._batch: Any = None
        self._rows: PartRows | None = None if done else claim_rows()

    def partitions(self) -> Sequence[Partition]:
        """The part."""
        return [self._partition]

    def read(self) -> SourceBatch | None:
        """The next rows for one topic. Raises ConnectError, and RetriableConnectError when Spark fails."""
        while self._batch is None:
            if self._rows is None or self._ending:
                return None
            given = self._rows.next(WAIT_SECONDS)
            if given is None:
                return self._end() if self._rows.ended else None
            self._batch = self._skipped(given)
        batch = self._batch
        topic, count = self._topic, batch.num_rows
        if "topic" in batch.schema.names:
            topics = batch.column("topic").to_pylist()
            topic = topics[0] or self._topic
            count = next((at for at, one in enumerate(topics) if (one or self._topic) != topic), count)
        if not topic:
            raise ConnectError(f"{self._name}: row {self._row} names no topic, and the connector has no `topic`")
        if self.most_records is not None:
            count = max(1, min(count, self.most_records))
        if self.most_bytes is not None and batch.nbytes > self.most_bytes:
            count = max(1, min(count, int(batch.num_rows * self.most_bytes / batch.nbytes)))
        self._batch = batch.slice(count) if count < batch.num_rows else None
        self._row += count
        return self._records(topic, batch.slice(0, count))

    def _skipped(self, batch: Any) -> Any:
        """Less the rows that are committed."""
        if self._row >= self._skip:
            return batch
        over = min(batch.num_rows, self._skip - self._row)
        self._row += over
        return batch.slice(over) if over < batch.num_rows else None

    def _records(self, topic: str, batch: Any) -> SourceBatch:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != "topic"}
        headers = columns.get("headers")
        return SourceBatch(
            topic,
            Column(columns["value"]),
            keys=Column(columns["key"]) if "key" in columns else None,
            partitions=columns.get("partition"),
            headers=None if headers is None else [[(h["key"], h["value"]) for h in one or ()] for one in headers],
            offsets=((self._partition, self._offset()),) if self._ordered else (),
            raw=True,
        )

    def _end(self) -> SourceBatch:
        if self._row < self._skip:
            raise ConnectError(f"{self._name} has {self._row} rows now, and {self._skip} of it were copied before")
        self._ending = True
        offset = {**self._offset(), "done": True}
        offsets = ((self._partition, offset),)
        return SourceBatch(self._topic, Column([]), offsets=offsets, short=True, raw=True, boundary="commit")

    def _offset(self) -> Offset:
        return {"rows": self._row, "split": self._split}

    def committed(self) -> None:
        """After the last commit the part is done."""
        self._done = self._done or self._ending

    def finished(self) -> bool:
        """Whether the part is done."""
        return self._done
