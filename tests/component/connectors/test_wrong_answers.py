"""A task whose third-party code returns an illegal value does not fail; it reports the method and the legal values."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from keelman.connect.plugin import Connector, Direction, Reader, Writer
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import STRING
from support.copying.harness import OneTask, Run, ticket
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component
BATCH = SourceBatch("odd", Column(["a"], STRING), offsets=[({"p": 1}, 5)])  # type: ignore[list-item]


class OddReader(Reader):
    def partitions(self) -> Any:
        return ()

    def read(self) -> SourceBatch | None:
        time.sleep(0.02)
        return None


class OddWriter(Writer):
    def write(self, batch: Any) -> None: ...

    def commit(self, offsets: Any, *, clean: bool) -> None: ...


class Odd(OneTask):
    @classmethod
    def open_reader(cls, config: Any, offset: Any) -> Reader:
        return OddReader()

    @classmethod
    def open_writer(cls, config: Any, connector: str, *, exactly_once: bool) -> Writer:
        return OddWriter()


class OddSource(Odd):
    names = ("com.acme.OddSource",)
    direction = Direction.SOURCE


class OddSink(Odd):
    names = ("com.acme.OddSink",)
    direction = Direction.SINK


async def later(*_: Any, **__: Any) -> None: ...


@pytest.mark.parametrize(
    "case",
    [
        (OddSource, OddSource, "open_reader", lambda *_: None, "is None; expected a Reader"),
        (OddSource, OddReader, "partitions", lambda _: [1], "is of type list: [1]; expected a list with a dict of"),
        (OddSource, OddReader, "read", lambda _: ["a"], "is of type list: ['a']; expected a SourceBatch, or None"),
        (OddSource, OddReader, "read", lambda _: BATCH, "is of type list: [({'p': 1}, 5)]; expected a list of pairs"),
        (
            OddSource,
            OddReader,
            "finished",
            later,
            "is of type coroutine, which is never awaited; expected True or False",
        ),
        (OddSource, OddReader, "left", lambda _: "much", "is of type str: 'much'; expected None or a number"),
        (OddSink, OddSink, "open_writer", later, "is of type coroutine, which is never awaited; expected a Writer"),
        (
            OddSink,
            OddWriter,
            "write",
            later,
            "is of type coroutine, which is never awaited; expected nothing, with all",
        ),
        (
            OddSink,
            OddWriter,
            "commit",
            later,
            "is of type coroutine, which is never awaited; expected nothing, with all",
        ),
        (OddSink, OddWriter, "kept", lambda _: None, "is None; expected a dict of KeptOffset by TopicPartition"),
    ],
)
def test_a_wrong_answer_is_told(
    bootstrap: str, name: str, runs: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]
) -> None:
    kind, owner, method, odd, text = case
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, b"x")
    assert producer.flush(300) == 0
    monkeypatch.setattr(owner, method, classmethod(odd) if issubclass(owner, Connector) else odd)
    monkeypatch.setattr(OddWriter, "keeps_offsets", method == "kept")
    config = {"name": name, "connector.class": kind.names[0], "topics": name, "keelman.commit.interval.ms": "20"}
    failed = runs(ticket(bootstrap, config), find=lambda _: kind).until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert failed.message.startswith(f"{kind.names[0]}: ")
    assert f"what {owner.__name__}.{method} returned {text}" in failed.message
    assert failed.trace.startswith(f"org.apache.kafka.connect.errors.ConnectException: {failed.message}\n")
