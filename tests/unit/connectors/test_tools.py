"""Verifiable and mock connectors without Kafka: their numbers, their lines, and the failures that they simulate."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.converters.configured import converter_for
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Connector, Reader
from keelman.connect.records import Column, Origin, SinkBatch, SourceBatch
from keelman.connectors.tools import mock, verifiable
from keelman.connectors.tools.mock import MockSink, MockSource
from keelman.connectors.tools.verifiable import VerifiableSink, VerifiableSource


def opened(kind: type[Connector], config: Mapping[str, str], offset: dict[str, Any] | None = None) -> Reader:
    return kind.open_reader({"name": "v", "topic": "t", **config}, lambda _: offset)


def numbers(batch: SourceBatch | None) -> list[int]:
    assert batch is not None
    return list(batch.values.values)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_numbers_go_on_behind_the_committed_one(tmp_path: Path) -> None:
    config = {"max.records": "5", "id": "3", "output.file": str(tmp_path / "lines")}
    assert [c["id"] for c in VerifiableSource.task_configs(config, 2)] == ["0", "1"]
    reader = opened(VerifiableSource, config, {"seqno": 1})
    reader.most_records = 2
    batch = reader.read()
    assert numbers(batch) == [2, 3]
    assert batch is not None
    assert batch.keys == Column([3, 3], verifiable.INT32)
    assert list(batch.offsets) == [({"id": 3}, {"seqno": 3})]
    reader.committed()
    assert numbers(reader.read()) == [4]
    assert reader.read() is None
    reader.close()
    results = [(x["name"], x["task"], x["topic"], x["seqno"], x.get("committed")) for x in lines(tmp_path / "lines")]
    expected = [(2, None), (3, None), (2, True), (3, True), (4, None)]
    assert results == [("v", 3, "t", seqno, committed) for seqno, committed in expected]
    with pytest.raises(ConnectError, match="seqno"):
        opened(VerifiableSource, {}, {"position": 1})


def test_throughput(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 50.0
    monkeypatch.setattr(verifiable.time, "monotonic", lambda: now)
    reader = opened(VerifiableSource, {"throughput": "10", "output.file": str(tmp_path / "lines")}, {"seqno": 99})
    assert reader.read() is None
    now += 0.35
    assert numbers(reader.read()) == [100, 101, 102]
    now += 1
    assert len(numbers(reader.read())) == 10
    assert opened(VerifiableSource, {"throughput": "0"}).read() is None


def test_transactions_end_at_the_same_numbers_wherever_it_begins(tmp_path: Path) -> None:
    config = {
        "transaction.boundary": "connector",
        "transaction.records": "4",
        "transaction.abort.every": "3",
        "max.records": "18",
        "output.file": str(tmp_path / "lines"),
    }
    for start in (0, 6):
        reader = opened(VerifiableSource, config, {"seqno": start - 1} if start else None)
        remaining: list[int] = []
        last: str | None = None
        while (batch := reader.read()) is not None:
            last = batch.boundary
            remaining += numbers(batch) if last != "abort" else []
            if last == "commit":
                reader.committed()
        assert remaining == [n for n in range(18) if not 8 <= n < 12 and n >= start]
        assert last is None
        reader.close()
    committed = [x["seqno"] for x in lines(tmp_path / "lines") if x.get("committed")]
    assert committed == [*range(8), *range(12, 16), 6, 7, *range(12, 16)]


def test_the_sink_tells_what_the_source_wrote(tmp_path: Path) -> None:
    config = {"complete.record.data": "true", "max.records": "2", "output.file": str(tmp_path / "in")}
    batch = opened(VerifiableSource, config).read()
    assert batch is not None
    assert batch.keys is not None
    worker = {f"{role}.converter": "org.apache.kafka.connect.json.JsonConverter" for role in ("key", "value")}
    values, keys = converter_for("value", {}, worker), converter_for("key", {}, worker)
    writer = VerifiableSink.open_writer({"name": "s", "output.file": str(tmp_path / "out")}, "s", exactly_once=False)
    back = SinkBatch(
        values.to_connect(values.from_connect(batch.values)),
        keys.to_connect(keys.from_connect(batch.keys)),
        Origin(["t", "t"], [0, 0], [7, 8], [None, None], [None, None]),
    )
    writer.write(back)
    writer.commit({}, clean=True)
    writer.commit({}, clean=True)
    writer.close()
    actual_lines = lines(tmp_path / "out")
    assert [(x["task"], x["seqno"]["seqno"], x["offset"], x.get("flushed")) for x in actual_lines] == [
        (0, 0, 7, None),
        (0, 1, 8, None),
        (0, 0, 7, True),
        (0, 1, 8, True),
    ]


def test_upstreams_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(mock.time, "monotonic", lambda: now)
    config = {"mock_mode": "task-failure", "delay_ms": "2000"}
    reader = MockSource.open_reader(config, lambda _: None)
    writer = MockSink.open_writer(config, "m", exactly_once=False)
    empty = SinkBatch(Column([]))
    writer.write(empty)
    assert reader.read() is None
    failing = {"mock_mode": "connector-failure", "delay_ms": "2000", "name": "m"}
    assert MockSource.task_configs(failing, 3) == [failing]
    assert MockSource.refresh_seconds(failing) == 2
    assert MockSource.refresh_seconds({**failing, "delay_ms": "0"}) == 1, "it is called as a third party's class is"
    MockSource.tend(failing)
    now += 2
    for act in (reader.read, lambda: writer.write(empty), lambda: MockSource.tend(failing)):
        with pytest.raises(ConnectError, match="mock"):
            act()
    MockSource.tend({})
    with pytest.raises(ConfigValueError, match="mock_mode"):
        MockSource.open_reader({"mock_mode": "whim"}, lambda _: None)


def test_it_fails_where_and_when_it_is_told(tmp_path: Path) -> None:
    control = tmp_path / "control"
    config = {"mock_mode": "fail", "mock_point": "read", "after_records": "3", "control_file": str(control)}
    reader = opened(MockSource, {**config, "output.file": str(tmp_path / "lines"), "max.records": "3"})
    assert numbers(reader.read()) == [0, 1, 2]
    with pytest.raises(ConnectError, match="mock failure at read after 3 records"):
        reader.read()
    control.write_text("fail-retriable commit")
    assert reader.read() is None
    with pytest.raises(RetriableConnectError):
        reader.committed()
    control.write_text("none")
    reader.committed()
    control.write_text("fail configure")
    with pytest.raises(ConnectError):
        MockSource.task_configs({"control_file": str(control)}, 1)
    with pytest.raises(ConnectError):
        MockSink.open_writer({"mock_mode": "fail", "mock_point": "open"}, "m", exactly_once=False)


@pytest.mark.parametrize("point", ["write", "commit", "close"])
def test_it_hangs_until_told_otherwise(tmp_path: Path, point: str) -> None:
    control = tmp_path / "control"
    control.write_text("none")
    writer = MockSink.open_writer({"control_file": str(control)}, "m", exactly_once=False)
    acts = {
        "write": lambda: writer.write(SinkBatch(Column([b"x"]))),
        "commit": lambda: writer.commit({}, clean=False),
        "close": writer.close,
    }
    acts[point]()
    control.write_text(f"hang {point}")
    thread = threading.Thread(target=acts[point], daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    control.write_text("none")
    thread.join(20)
    assert not thread.is_alive()


def test_it_kills_its_process(tmp_path: Path) -> None:
    program = (
        "from keelman.connectors.tools.mock import MockSource\n"
        "config = {'mock_mode': 'die', 'mock_point': 'open'}\n"
        "MockSource.open_reader(config, lambda _: None)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], timeout=60, check=False, cwd=tmp_path)
    assert ended.returncode == -signal.SIGKILL
