"""Mock source and sink: connectors that fail, hang or kill their process as configured. For tests.

Upstream's names and keys (org.apache.kafka.connect.tools.Mock{Source,Sink}Connector): `mock_mode` connector-failure or
task-failure, after `delay_ms`. Our additions: the modes fail, fail-retriable, hang and die, at the point
`mock_point` (configure, open, read, write, commit, close) once `after_records` records have passed. The first line of
`control_file`, "mode [point [after]]", overrides the configuration while the file exists: so a test can change the
fault while it runs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, at_least, one_of
from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.plugin import LEAST_REFRESH_SECONDS, Connector, Direction, KeptOffset, Reader, Writer
from keelman.connect.records import Offset, Partition, SinkBatch, SourceBatch, TopicPartition
from keelman.connect.watches import Watch
from keelman.connectors.tools.verifiable import VerifiableSource

MODES = ("connector-failure", "task-failure", "fail", "fail-retriable", "hang", "die", "none")
POINTS = ("configure", "open", "read", "write", "commit", "close")
LOOK_SECONDS = 0.05

_first_tended: dict[str, float] = {}


class Order(NamedTuple):
    """An order to a mock: what to do, where, and after how many records."""

    mode: str
    point: str
    after: int


class Faults:
    """Commits the faults that the configuration or the control file orders at each point."""

    def __init__(self, config: Mapping[str, str], usual_point: str) -> None:
        """Raises ConfigValueError. `usual_point` is the point of a mode without one."""
        parsed = _Mock.config_def().parse(config)
        self._usual = Order(parsed["mock_mode"], parsed["mock_point"] or usual_point, parsed["after_records"])
        self._control = Path(parsed["control_file"]) if parsed["control_file"] else None
        self._fails_at = time.monotonic() + parsed["delay_ms"] / 1000
        self._usual_point = usual_point
        self.records = 0

    def at(self, point: str) -> None:
        """Commits the fault ordered for this point, if any. Raises ConnectError; hangs; kills the process."""
        order = self._order()
        if order.mode == "task-failure" and point in ("read", "write") and time.monotonic() >= self._fails_at:
            raise ConnectError("mock task failure")
        if order.point != point or self.records < order.after:
            return
        if order.mode == "fail":
            raise ConnectError(f"mock failure at {point} after {self.records} records")
        if order.mode == "fail-retriable":
            raise RetriableConnectError(f"mock failure at {point} after {self.records} records")
        if order.mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        while order.mode == "hang" and order.point == point:
            threading.Event().wait(LOOK_SECONDS)
            order = self._order()

    def _order(self) -> Order:
        if self._control is None:
            return self._usual
        try:
            words = self._control.read_text(encoding="utf-8").split()
        except OSError:
            return self._usual
        if not words or words[0] not in MODES:
            return self._usual
        point = words[1] if len(words) > 1 and words[1] in POINTS else self._usual_point
        return Order(words[0], point, int(words[2]) if len(words) > 2 and words[2].isdecimal() else 0)


class _Mock(Connector):
    version = "4.3.0"
    runs_on = "anywhere"
    asked_apart = True  # its faults at configuration must not hit a worker

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the keys of both mocks."""
        low = Importance.LOW
        line = 'File whose line "mode [point [after]]" goes before these.'
        return ConfigDef(
            ConfigKey("mock_mode", Type.STRING, "none", Importance.HIGH, "What goes wrong.", one_of(*MODES)),
            ConfigKey("delay_ms", Type.LONG, 15000, low, "Milliseconds before connector-failure and task-failure."),
            ConfigKey("mock_point", Type.STRING, None, low, f"Where it goes wrong: {', '.join(POINTS)}.", _point),
            ConfigKey("after_records", Type.LONG, 0, low, "Records that a task copies before that.", at_least(0)),
            ConfigKey("control_file", Type.STRING, None, low, line),
        )

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns one task. Fails at the point `configure`."""
        Faults(config, "").at("configure")
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True for the source."""
        return cls.direction is Direction.SOURCE

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """Returns the delay of a connector-failure, so that the connector is called when its failure is due."""
        parsed = cls.config_def().parse(config)
        if parsed["mock_mode"] != "connector-failure":
            return None
        return max(LEAST_REFRESH_SECONDS, float(parsed["delay_ms"]) / 1000)

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        """Fails when the delay of a connector-failure is over, counted from the first call in this process."""
        parsed = cls.config_def().parse(config)
        if parsed["mock_mode"] != "connector-failure":
            return
        first = _first_tended.setdefault(repr(sorted(config.items())), time.monotonic())
        if time.monotonic() - first >= parsed["delay_ms"] / 1000:
            raise ConnectError("mock connector failure")


class MockSource(_Mock):
    """With `topic` a verifiable source, with its keys and offsets; without it a source that never has anything."""

    names = ("org.apache.kafka.connect.tools.MockSourceConnector", "MockSourceConnector", "MockSource")
    direction = Direction.SOURCE

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """Returns the reader. Fails at the point `open`."""
        faults = Faults(config, "read")
        faults.at("open")
        inner = VerifiableSource.open_reader(config, offset) if config.get("topic") else None
        return MockReader(faults, inner)


class MockReader(Reader):
    """Reads with its inner reader, unless a fault is due."""

    lag_unit = "records"

    def __init__(self, faults: Faults, inner: Reader | None) -> None:
        self._faults = faults
        self._inner = inner

    def partitions(self) -> Sequence[Partition]:
        """Returns the inner reader's partitions."""
        return () if self._inner is None else self._inner.partitions()

    def read(self) -> SourceBatch | None:
        """Reads a batch. Fails at the point `read`."""
        self._faults.at("read")
        if self._inner is None:
            return None
        self._inner.most_records = self.most_records
        batch = self._inner.read()
        self._faults.records += 0 if batch is None else len(batch.values.values)
        return batch

    def watch(self) -> Watch | None:
        """Returns None: the task never parks."""
        return None

    def committed(self) -> None:
        """Fails at the point `commit`, after the commit."""
        self._faults.at("commit")
        if self._inner is not None:
            self._inner.committed()

    def close(self) -> None:
        """Goes wrong at the point `close`."""
        self._faults.at("close")
        if self._inner is not None:
            self._inner.close()


class MockSink(_Mock):
    """Takes records and keeps none."""

    names = ("org.apache.kafka.connect.tools.MockSinkConnector", "MockSinkConnector", "MockSink")
    direction = Direction.SINK

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """Returns the writer. Fails at the point `open`."""
        faults = Faults(config, "write")
        faults.at("open")
        return MockWriter(faults)


class MockWriter(Writer):
    """Counts records, unless a fault is due."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def write(self, batch: SinkBatch) -> None:
        """Counts a batch. Fails at the point `write`."""
        self._faults.at("write")
        self._faults.records += len(batch.values.values)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Fails at the point `commit`, before the commit."""
        self._faults.at("commit")

    def close(self) -> None:
        """Goes wrong at the point `close`."""
        self._faults.at("close")


def _point(name: str, value: Any) -> None:
    if value is not None:
        one_of(*POINTS)(name, value)
