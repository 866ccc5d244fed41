"""A source that copies the records that its test feeds it, before a broker behind a proxy that sees requests."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from pathlib import Path
from typing import Any, TypeVar

from keelman.connect.plugin import Direction, Reader
from keelman.connect.records import Column, SourceBatch
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import FileWatch, Watch
from support.brokers.broker import BrokerProcess, proxied_broker
from support.brokers.kafka_proxy import END_TXN, Catch, Fate
from support.copying.harness import OneTask, Run, committed_offsets, ticket
from support.kafka.topics import messages
from support.waiting import until

NUMBERS = itertools.count()
PARTITION = {"feed": "test"}
T = TypeVar("T")


class Brokers:
    """One broker behind a proxy that sees requests, both run by a loop in a thread of its own."""

    def __init__(self, home: Path, broker: BrokerProcess | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = proxied_broker(home, broker)
        self.proxy = self.call(self._open.__aenter__())
        self.bootstrap = self.proxy.address

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def catch(self, fate: Fate, transactional_id: str, nth: int) -> Catch:
        """Catches the n-th EndTxn from now on, with this fate."""
        return self.proxy.catch(END_TXN, fate, transactional_id=transactional_id, nth=nth)

    def seen(self, caught: Catch) -> None:
        self.call(caught.seen())

    def release(self, caught: Catch) -> bytes:
        """Forwards a held request; the broker's answer."""
        self._loop.call_soon_threadsafe(caught.release)
        answer: bytes = self.call(caught.answered())
        return answer

    def close(self) -> None:
        self.call(self._open.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Feed(Reader):
    """Yields the batches of the test, each with the number of its last record as offset."""

    lag_unit = "records"

    def __init__(self, name: str) -> None:
        self.topic = name
        self.batches: queue.SimpleQueue[SourceBatch] = queue.SimpleQueue()
        self.endless = False
        self.empty_reads = 0
        self.count = 0
        self.commits = 0
        self.plan: TopicPlan | None = None

    def put(self, *values: bytes | None, **more: Any) -> None:
        """Adds one batch."""
        self.count += len(values)
        chosen: dict[str, Any] = {"raw": True, "offsets": ((PARTITION, {"n": self.count}),), **more}
        self.batches.put(SourceBatch(self.topic, Column(list(values)), **chosen))

    def partitions(self) -> list[dict[str, str]]:
        return [PARTITION]

    def read(self) -> SourceBatch | None:
        if self.endless:
            count = min(1000, self.most_records or 1000)
            self.put(*(b"%d" % (self.count + n) for n in range(count)))
        try:
            return self.batches.get_nowait()
        except queue.Empty:
            self.empty_reads += 1
            return None

    def all_read(self) -> None:
        """Waits until everything was read and the engine has requested more."""
        before = self.empty_reads
        until(lambda: self.batches.empty() and self.empty_reads > before, "all is read")

    def left(self) -> int:
        return self.batches.qsize()

    def watch(self) -> Watch:
        return FileWatch("/the/file", self.count, 7)

    def topic_plan(self, topic: str) -> TopicPlan | None:
        return self.plan

    def committed(self) -> None:
        self.commits += 1


class Bench:
    """One task that copies its feed; run as often as the test likes."""

    def __init__(self, brokers: Brokers, **config: str) -> None:
        self.name = f"fed{next(NUMBERS)}"
        self.brokers = brokers
        self.config = {"name": self.name, "connector.class": "FedSource", **config}
        self.feed = Feed(self.name)
        self.runs: list[Run] = []

    def run(self, feed: Feed | None = None, **fields: Any) -> Run:
        self.feed = feed or self.feed
        opened = self.feed

        class FedSource(OneTask):
            names = ("FedSource",)
            direction = Direction.SOURCE

            @classmethod
            def open_reader(cls, config: Any, offset: Any) -> Reader:
                opened.count = (offset(PARTITION) or {"n": 0})["n"]
                return opened

        granted = ticket(self.brokers.bootstrap, self.config, **fields)
        self.runs.append(Run(granted, find=lambda _: FedSource))
        return self.runs[-1]

    def visible(self, isolation: str = "read_committed", *, stays_open: bool = False) -> list[bytes | None]:
        """All values of the topic; `stays_open` as in `messages`."""
        return visible(self.brokers.bootstrap, self.name, isolation, stays_open=stays_open)

    def offset(self, topic: str = "test-offsets") -> bytes | None:
        """The committed offset in an offset topic."""
        return dict(committed_offsets(self.brokers.bootstrap, topic, self.name)).get(
            b'["%s",{"feed":"test"}]' % self.name.encode()
        )


def visible(bootstrap: str, topic: str, isolation: str, *, stays_open: bool = False) -> list[bytes | None]:
    return [m.value() for m in messages(bootstrap, topic, isolation, stays_open=stays_open)]
