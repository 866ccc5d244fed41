"""A source task's offsets through Connect's own reader and writer: Java makes the bytes, and they stay unchanged.

Source: `OffsetStorageReaderImpl` and `OffsetStorageWriter` of Kafka Connect 4.3; the store below them is the engine's
table of committed offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.records import RawOffset
from keelman.connectors.java.configs import json_converter
from keelman.connectors.java.jvm import java_class, jpype

STORAGE = "org.apache.kafka.connect.storage"


class OffsetStore:
    """Connect's OffsetBackingStore over the committed offsets. Java calls it, by these names."""

    def __init__(self, committed: CommittedOffsets) -> None:
        self._committed = committed
        self.asked: dict[bytes, None] = {}
        """The keys that were looked up."""
        self.flushed: list[RawOffset] = []
        """The offsets written last."""

    def get(self, keys: Any) -> Any:
        """Returns the committed values of these keys, null for keys without a value."""
        library = jpype()
        java_map = java_class("java.util.HashMap")()
        for key in keys:
            raw = _bytes(key)
            self.asked[raw] = None
            value = self._committed.raw_value(raw)
            wrap = java_class("java.nio.ByteBuffer").wrap
            java_map.put(key, None if value is None else wrap(library.JArray(library.JByte)(value)))
        return java_class("java.util.concurrent.CompletableFuture").completedFuture(java_map)

    def set(self, values: Any, callback: Any) -> Any:
        """Keeps Java's serialised offsets for the engine's next commit."""
        self.flushed = [
            RawOffset(_bytes(entry.getKey()) or b"", _bytes(entry.getValue())) for entry in values.entrySet()
        ]
        callback.onCompletion(None, None)
        return java_class("java.util.concurrent.CompletableFuture").completedFuture(None)

    def connectorPartitions(self, _connector: Any) -> Any:
        """Returns nothing: Connect calls it for a sink's store only."""
        return java_class("java.util.HashSet")()

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""

    def configure(self, _config: Any) -> None:
        """Nothing to do."""


class TaskOffsets:
    """The offsets of one task. `reader` is for the task's context, in any thread; `writer` and `flush` for one
    thread."""

    def __init__(self, committed: CommittedOffsets) -> None:
        library = jpype()
        self._store = OffsetStore(committed)
        store = library.JProxy(f"{STORAGE}.OffsetBackingStore", inst=self._store)
        # As a worker's for its own topics.
        converters = [json_converter(schemas=False, key=key) for key in (True, False)]
        self.reader = java_class(f"{STORAGE}.OffsetStorageReaderImpl")(store, committed.connector, *converters)
        self.writer = java_class(f"{STORAGE}.OffsetStorageWriter")(store, committed.connector, *converters)
        self._callback = library.JProxy("org.apache.kafka.connect.util.Callback", inst=self)
        self._failure: Any = None

    @property
    def asked(self) -> Iterator[bytes]:
        """The keys that the task has looked up."""
        return iter(tuple(self._store.asked))

    def flush(self) -> list[RawOffset]:
        """Returns the offsets written since the last call, as keys and values of the offset topic.

        Raises ConnectError for offsets that are no flat maps of primitive values."""
        if not self.writer.beginFlush():
            return []
        self._failure = None
        self.writer.doFlush(self._callback)
        if self._failure is not None:
            failure, _ = self._failure, self.writer.cancelFlush()
            raise ConnectError(f"Failed to flush offsets: {failure.toString()}")
        return self._store.flushed

    def onCompletion(self, error: Any, _result: Any) -> None:
        """Java calls it when a flush has ended."""
        self._failure = error

    def close(self) -> None:
        """Ends look-ups that wait."""
        self.reader.close()


def _bytes(buffer: Any) -> Any:
    return None if buffer is None else bytes(memoryview(buffer.array()))
