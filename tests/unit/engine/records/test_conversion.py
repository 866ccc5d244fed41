"""Orders and requests to a registry while a batch is converted, and records that break the report of their error."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from confluent_kafka import Message

from keelman.connect.bad_records.tolerance import Policy, RecordRefused
from keelman.connect.errors import DataError, RetriableConnectError
from keelman.connect.failed_record import FailedRecord, converter_stage
from keelman.connect.plugin import Writer
from keelman.connect.records import Column, SinkBatch, SourceBatch
from keelman.connect.registry.interface import SCHEMA_NOT_FOUND, RegistryError, SchemaKind, SchemaText
from keelman.connect.schema import STRING
from keelman.engine.control import Control, CutShort, GaveUp
from keelman.engine.records import conversion
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.sink.batch import BatchBuilder
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.source.conversion import SourceConversion, without_steps
from support.copying.orders import DRAIN

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
DEAD = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
PLAIN = {"name": "c", "key.converter": TEXT, "value.converter": TEXT, **DEAD}
FOR_EVER = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "0"}


class Kept(Writer):
    """A writer that collects its batches."""

    def __init__(self) -> None:
        self.batches: list[SinkBatch] = []

    def write(self, batch: SinkBatch) -> None:
        self.batches.append(batch)

    def commit(self, offsets: Any, *, clean: bool = False) -> None:
        pass


def away(control: Control, order: str, tries: int = 3) -> Any:
    """A step whose other system is away; an order comes in the middle of it."""
    left = [lambda: control.apply(DRAIN) if order == "drain" else control.cut("X")] + [lambda: None] * tries

    def work(_given: Any) -> Any:
        (left.pop() if left else lambda: None)()
        raise RetriableConnectError("away")

    return work


@pytest.mark.parametrize(("order", "end"), [("drain", GaveUp), ("cut", CutShort)])
def test_an_order_ends_the_wait_of_a_source_for_what_is_away(order: str, end: type[Exception]) -> None:
    control = Control()
    config = {**PLAIN, **FOR_EVER}
    bad = BadRecords("c", 0, Policy.of(config, sink=False), control)
    source_conversion = SourceConversion(config, {}, bad)
    source_conversion._values.from_connect = away(control, order)  # type: ignore[method-assign]
    with pytest.raises(end):
        list(source_conversion.payloads(SourceBatch("t", Column(["a", "b"], STRING))))
    assert (bad.counts.skipped, bad.take_letters()) == (0, [])


def test_a_drained_sink_writes_nothing_of_the_batch_that_waits() -> None:
    control = Control()
    config = {**PLAIN, "value.converter": JSON, "value.converter.schemas.enable": "false", **FOR_EVER}
    del config["errors.deadletterqueue.topic.name"]
    delivery, writer = SinkPipeline("c", 0, {"bootstrap.servers": "none:1"}, config, control), Kept()
    messages = [Message(topic="t", partition=0, offset=n, value=value) for n, value in enumerate([b"1", b"{", b"3"])]
    reads = delivery._columns._conversion._values
    reading, late = reads.to_connect, away(control, "drain")

    def to_connect(payloads: list[bytes | None]) -> Column:
        return late(payloads) if b"3" in payloads else reading(payloads)

    reads.to_connect = to_connect  # type: ignore[method-assign]
    with pytest.raises(GaveUp):
        delivery.put(messages, writer)
    assert (writer.batches, delivery.counts.errors, delivery.counts.skipped) == ([], 1, 0)


def test_a_letter_of_a_value_that_nothing_can_show_says_what_it_was() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(10_000):
        inner["a"] = {}
        inner = inner["a"]
    config = {**PLAIN, "value.converter": JSON, "value.converter.schemas.enable": "false"}
    bad = BadRecords("c", 0, Policy.of(config, sink=False))
    payloads = list(SourceConversion(config, {}, bad).payloads(SourceBatch("t", Column([{"ok": 1}, deep]))))
    assert [values for _, values, _ in payloads] == [[b'{"ok":1}']]
    (letter,) = bad.take_letters()
    assert (letter.original.value, letter.original.value_format) == (b"dict", "text")


def test_a_piece_of_which_nothing_is_left_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**PLAIN, "transforms": "x", "transforms.x.type": "org.apache.kafka.connect.transforms.Filter"}
    source_conversion = SourceConversion(config, {}, BadRecords("c", 0, Policy.of(config, sink=False)))
    whole, pieces = source_conversion._together, list[SourceBatch]()

    def together(batch: SourceBatch) -> Any:
        pieces.append(batch)
        return None if len(pieces) == 1 else whole(batch)

    monkeypatch.setattr(source_conversion, "_together", together)
    monkeypatch.setattr(source_conversion, "_one_by_one", lambda _batch: pytest.fail("done again"))
    assert list(source_conversion.payloads(SourceBatch("t", Column(["a"] * 250, STRING)))) == []
    assert len(pieces) == 4


def test_a_run_shows_that_it_is_alive_with_each_question_to_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, requests = [0], list[int]()

    class Slow:
        def schema(self, schema_id: int) -> SchemaText:
            requests.append(beats[0])
            return SchemaText(SchemaKind.AVRO, '"string"')

        def lookup(self, *_: Any, **__: Any) -> Any:
            raise RegistryError("none", SCHEMA_NOT_FOUND)

    def allowed() -> bool:
        beats[0] += 1
        return True

    monkeypatch.setattr(conversion, "open_registry", lambda _config: Slow())
    config = {**PLAIN, "value.converter": AVRO, "value.converter.schema.registry.url": "http://r:1"}
    control = Control(allowed)
    columns = BatchBuilder(config, {}, BadRecords("c", 0, Policy.of(config, sink=True), control))

    def message(number: int) -> Message:
        return Message(topic="t", partition=0, offset=number, value=struct.pack(">BI", 0, number) + b"\x02a")

    batch, _ = columns.batch([message(n) for n in range(3)], Kept())
    assert batch.values.texts().values == ["a", "a", "a"]
    assert len(requests) == 3
    assert requests[2] - requests[0] >= 4
    control.cut("X")
    with pytest.raises(CutShort):
        columns.batch([message(9)], Kept())


def test_records_that_a_reader_could_not_convert_are_passed_over_with_its_own_stage_and_class() -> None:
    failed = FailedRecord(converter_stage("value", "acme.Odd"), DataError("odd"), key_format="bytes")
    delivered = {1: "first", 2: "second"}
    config = without_steps({**PLAIN, "value.converter": "acme.Odd", "transforms": "x", "transforms.x.type": "acme.Y"})
    batch = SourceBatch(
        "t",
        Column([b"1", b"{}", b"3"]),
        Column([b"a", b"b", b"c"]),
        raw=True,
        failed={1: failed},
        delivered=delivered,  # type: ignore[arg-type]
        position=lambda index: ({"f": 1}, {"p": index}),
    )
    bad = BadRecords("c", 0, Policy.of(config, sink=False))
    ((piece, values, keys),) = SourceConversion(config, {}, bad).payloads(batch)
    assert (values, keys, piece.delivered) == ([b"1", b"3"], [b"a", b"c"], {1: "second"})
    (letter,) = bad.take_letters()
    assert (letter.original.key, letter.original.value) == (b"b", b"{}")
    assert (letter.original.key_format, letter.original.value_format) == ("bytes", "json")
    assert (letter.why.stage, letter.why.class_name, letter.whence.source_offset) == (
        "VALUE_CONVERTER",
        "acme.Odd",
        {"p": 1},
    )
    with pytest.raises(RecordRefused, match=r"odd .*value converter Odd"):
        list(SourceConversion(without_steps({"name": "c"}), {}).payloads(batch))
