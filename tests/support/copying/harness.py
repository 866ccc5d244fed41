"""Hosts one copy run after another as a slot does, and does the worker's part: grant, read committed offsets, confirm.

As a program (`python -m support.copying.harness <spec.json>`) it is the process that tests kill; SIGTERM drains it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from keelman.api.copy.v1 import copy_run_pb2, ticket_pb2
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.connect.config.definition import ConfigDef
from keelman.connect.offsets import parse_key
from keelman.connect.plugin import Connector
from keelman.connectors.file import journaled_writer as file_sink
from keelman.connectors.registry import find_connector
from keelman.engine import reporter
from keelman.engine.producing import transactions
from keelman.engine.run import CopyRunLoop
from keelman.engine.sink import commits as sink_commits
from keelman.engine.sink.exactly_once import journal
from keelman.kafka.batches import producer as batch_producer
from keelman.runtime.processes.die_with_parent import tethered
from support.copying.orders import DRAIN
from support.kafka.topics import AT_ONCE, ends_of
from support.places import with_tests
from support.waiting import until

reporter.EVERY_SECONDS = 0.02  # each wait of a test for progress is about half a second shorter
OFFSET_TOPIC = "test-offsets"
OFFSET_PARTITIONS = 5
STATES = copy_run_pb2.CopyRunState


class OneTask(Connector):
    """A connector without keys of its own; a test opens its one task as it likes."""

    version = "1"
    runs_on = "anywhere"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    @classmethod
    def task_configs(cls, config: Any, max_tasks: int) -> list[dict[str, str]]:
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config: Any) -> bool:
        return True


@contextmanager
def hosted(bootstrap: str, config: dict[str, str], log: Path, **spec: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own that copies for one task, to be killed or drained; `die` names where it kills itself.

    It ends with the block, and with the process that started it. The log is its own: a previous process's log is
    removed.
    """
    text = json.dumps({"bootstrap": bootstrap, "config": config, **spec})
    command = tethered([sys.executable, "-m", "support.copying.harness", text])
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=with_tests())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def dies_at(bootstrap: str, config: dict[str, str], log: Path, point: Sequence[str | int]) -> None:
    """Hosts a run until it kills itself at this point."""
    with hosted(bootstrap, config, log, die=point) as process:
        code = process.wait(120)
    assert code == -signal.SIGKILL, f"did not come to {point}:\n{log.read_text(errors='replace')[-4000:]}"


def latest(log: Path) -> dict[str, Any]:
    """The newest update in a log of hosted processes, which libraries write to as well; empty before the first."""
    lines = [
        line for line in log.read_text(errors="replace").splitlines(keepends=True) if line.startswith('{"state": ')
    ]
    whole = [line for line in lines if line.endswith("}\n")]
    actual_latest: dict[str, Any] = json.loads(whole[-1]) if whole else {}
    return actual_latest


def until_all_copied(process: subprocess.Popen[bytes], log: Path, seconds: float = 300.0) -> None:
    """Waits until a hosted process reports that nothing is left. Raises AssertionError with the end of its log."""

    def copied() -> bool:
        assert process.poll() is None, f"ended with {process.returncode}"
        update = latest(log)
        return (update.get("state"), update.get("lag")) == ("RUNNING", 0)

    try:
        until(copied, "all is copied", seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}; the log ends with:\n{log.read_text(errors='replace')[-6000:]}") from error


def copied_to_the_end(bootstrap: str, config: dict[str, str], log: Path) -> None:
    """Hosts a run until nothing is left, and ends it."""
    with hosted(bootstrap, config, log) as process:
        until_all_copied(process, log)
        process.terminate()
        code = process.wait(60)
        assert code == 0, f"ended with {code}:\n{log.read_text(errors='replace')[-6000:]}"


def committed_offsets(bootstrap: str, topic: str, connector: str) -> list[tuple[bytes, bytes]]:
    """The connector's records in the offset topic, committed before now; a tombstone removes."""
    base = {"bootstrap.servers": bootstrap, "group.id": f"look-{uuid.uuid4()}", "enable.auto.commit": False, **AT_ONCE}
    ends = ends_of(bootstrap, topic)
    answer: dict[bytes, bytes] = {}
    reader = Consumer({**base, "isolation.level": "read_committed", "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, p, 0) for p in ends])
    waiting = {p for p, end in ends.items() if end > 0}
    deadline = time.monotonic() + 300
    while waiting:
        assert time.monotonic() < deadline, f"the committed offsets of {topic} were not read"
        message = reader.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            if message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= ends[message.partition()]:
                waiting.discard(message.partition())
            continue
        parsed = parse_key(message.key())
        if parsed is not None and parsed[0] == connector:
            answer.pop(message.key(), None)
            if message.value() is not None:
                answer[message.key()] = message.value()
    reader.close()
    return list(answer.items())


def ticket(bootstrap: str, config: dict[str, str], **fields: Any) -> ticket_pb2.StartTicket:
    """A ticket for task 0 of a connector, exactly once by default."""
    name = config["name"]
    worker = {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "group.id": "test-workers",
    }
    source = "Source" in config["connector.class"]
    chosen: dict[str, Any] = {
        "run_uid": str(uuid.uuid4()),
        "connector": name,
        "task": 0,
        "direction": ticket_pb2.COPY_DIRECTION_SOURCE if source else ticket_pb2.COPY_DIRECTION_SINK,
        "connector_config": config,
        "task_config": config,
        "worker_config": {**worker, **fields.pop("worker_config", {})},
        "delivery": ticket_pb2.DELIVERY_GUARANTEE_EXACTLY_ONCE,
        "transactional_id": f"test-workers-{name}-0" if source else "",
        "offset_topic": OFFSET_TOPIC if source else "",
    }
    return ticket_pb2.StartTicket(**{**chosen, **fields})


class Run:
    """One copy run under test: confirms it by itself and keeps every update."""

    def __init__(
        self,
        granted: ticket_pb2.StartTicket,
        *,
        confirm: bool = True,
        find: Callable[[str], type[Connector]] = find_connector,
    ) -> None:
        self.ticket = granted
        self.updates: queue.Queue[RunUpdate] = queue.Queue()
        self.seen: list[RunUpdate] = []
        self._confirm = confirm
        self.loop = CopyRunLoop(granted, self._told, find=find)
        self.loop.start()

    def _told(self, update: RunUpdate) -> None:
        self.updates.put(update)
        if update.state == copy_run_pb2.COPY_RUN_STATE_FENCED and self._confirm:
            threading.Thread(target=self.confirm, daemon=True).start()

    def confirm(self) -> None:
        """Acts as a worker does after the fence."""
        records = []
        if self.ticket.offset_topic:
            bootstrap = self.ticket.worker_config["bootstrap.servers"]
            for topic in filter(None, (self.ticket.worker_offset_topic, self.ticket.offset_topic)):
                records += committed_offsets(bootstrap, topic, self.ticket.connector)
        offsets = [ticket_pb2.SourceOffset(key=k, value=v) for k, v in records]
        self.loop.control.apply(RunOrder(confirm=ticket_pb2.Confirmation(offsets=offsets)))

    def until(self, condition: Any, *, seconds: float = 300.0) -> RunUpdate:
        """The first update, seen already or to come, for which the condition holds."""
        for update in self.seen:
            if condition(update):
                return update
        deadline = time.monotonic() + seconds
        while True:
            try:
                update = self.updates.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no such update in {seconds} s; last: {self.seen[-1:]}") from None
            self.seen.append(update)
            if condition(update):
                return update
            assert update.state not in ENDS, f"ended before that: {update}"

    def until_state(self, state: str, *, seconds: float = 300.0) -> RunUpdate:
        """Waits for a state by its short name."""
        value = STATES.Value(f"COPY_RUN_STATE_{state}")
        return self.until(lambda u: u.state == value, seconds=seconds)

    def until_records(self, records: int, *, seconds: float = 300.0) -> RunUpdate:
        """Waits until that many records are committed."""
        return self.until(lambda u: u.progress.records >= records, seconds=seconds)

    def drain(self) -> RunUpdate:
        """Drains and waits for the end."""
        self.loop.control.apply(DRAIN)
        update = self.until_state("ENDED")
        assert self.loop.join(300)
        return update

    def copied(self, records: int) -> RunUpdate:
        """Waits until that many records are committed, drains, and waits for the end."""
        self.until_records(records)
        return self.drain()


ENDS = (copy_run_pb2.COPY_RUN_STATE_ENDED, copy_run_pb2.COPY_RUN_STATE_FAILED)


def die_at(point: str, count: int) -> None:
    """Makes this process kill itself with SIGKILL when it reaches a point in the copying for the n-th time."""
    owner, methods, before = {
        "record in an open transaction": (transactions.TransactionalProducer, ("send", "send_packed"), False),
        "offsets in an open transaction": (batch_producer.BatchProducer, ("_commit_now", "end"), True),
        "transaction committed": (transactions.TransactionalProducer, ("commit",), False),
        "data written": (file_sink.JournaledWriter, ("write",), False),
        "data durable": (journal.Journal, ("save",), True),
        "journal not renamed": (os, ("rename",), True),
        "journal durable": (journal.Journal, ("save",), False),
        "group told": (sink_commits.SinkCommits, ("send_group",), False),
    }[point]
    left = count

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if point == "offsets in an open transaction" and args[0].is_ending:
                return real(*args, **kwargs)  # waits for the ids that were counted when the request was sent
            left -= 1
            result = None if before and left <= 0 else real(*args, **kwargs)
            if left <= 0:
                if point == "record in an open transaction":
                    args[0]._deliver(args[0]._held())
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called

    for method in methods:
        setattr(owner, method, dying(getattr(owner, method)))


def host(spec: dict[str, Any]) -> int:
    """Runs one task until SIGTERM, as `copied`."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return copied(spec, find_connector, stop)


def copied(spec: dict[str, Any], find: Callable[[str], type[Connector]], stop: threading.Event) -> int:
    """Runs one task until `stop` is set, with a new ticket after each retriable failure; prints one line an update."""
    if "die" in spec:
        die_at(*spec["die"])
    while True:
        run = Run(ticket(spec["bootstrap"], spec["config"], **spec.get("fields", {})), find=find)
        drained = False
        while True:
            if stop.is_set() and not drained:
                drained = True
                run.loop.control.apply(DRAIN)
            try:
                update = run.updates.get(timeout=0.02)
            except queue.Empty:
                continue
            told = {
                "state": STATES.Name(update.state)[15:],
                "reason": update.reason,
                "records": update.progress.records,
            }
            told |= {
                "lag": update.progress.lag if update.progress.HasField("lag") else -1,
                "rate": round(update.progress.records_per_second),
            }
            told |= {"message": update.message, "left": update.progress.remaining_time.ToSeconds()}
            # One write a line: the run's thread writes its log to the same file.
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
            if update.state in ENDS:
                break
        run.loop.join(300)
        if drained or stop.is_set():
            return 0
        if not update.retriable:
            return 1


if __name__ == "__main__":
    sys.exit(host(json.loads(sys.argv[1])))
