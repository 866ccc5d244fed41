"""Members of a sink's group other than our tasks: consumers of the client library's, each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer


class Member:
    """A member that commits each record as it reads it."""

    def __init__(self, bootstrap: str, group: str, topic: str, assignor: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "partition.assignment.strategy": assignor}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        self._consumer.subscribe([topic])
        self.values: list[str] = []
        self.places: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append((message.value() or b"").decode())
                self._consumer.commit(message, asynchronous=False)
            self.places = {item.partition for item in self._consumer.assignment()}
        self._consumer.close()

    def end(self) -> None:
        """Leaves the group."""
        self._ended.set()
        self._thread.join(300)


@contextmanager
def member(bootstrap: str, group: str, topic: str, assignor: str = "cooperative-sticky") -> Iterator[Member]:
    """A member for as long as the block lasts."""
    new_member = Member(bootstrap, group, topic, assignor)
    try:
        yield new_member
    finally:
        new_member.end()
