"""Two drivers on a local master and a worker's own link to them: the standby serves when the driver dies."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import worker_link_service_pb2 as wire
from keelman.api.copy.v1.ticket_pb2 import Confirmation, StartTicket
from keelman.worker.spark_drivers import Drivers
from keelman.worker.tasks.link import SparkLink
from support.eventually import eventually
from support.spark.links import Spark

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]
NUMBERS = itertools.count(1)
STANDS_STILL_SECONDS = 60.0  # on a busy machine; without a standby it would be for ever
IDLE_SECONDS = 3


@dataclass
class OneTask:
    """Keeps one copy run going, as a worker does: another one follows each that failed or is gone."""

    folder: Path
    link: SparkLink | None = None
    uids: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def update(self, update: orders.RunUpdate) -> None:
        assert self.link is not None
        self.reasons.append(update.reason)
        if update.run_uid != self.uids[-1]:
            return
        if update.state == states.COPY_RUN_STATE_FENCED:
            self.link.send(orders.RunOrder(run_uid=update.run_uid, confirm=Confirmation()))
        elif update.state == states.COPY_RUN_STATE_FAILED:
            self.start()

    def reconcile(self, uids: frozenset[str]) -> None:
        if not self.uids or self.uids[-1] not in uids:
            self.start()

    def start(self) -> None:
        assert self.link is not None
        self.uids.append(uid := f"of-link-{next(NUMBERS)}")
        config = {"file": str(self.folder / uid)}
        ticket = StartTicket(
            run_uid=uid, worker_cluster="wc", worker_id="w:8083", connector="c", connector_config=config
        )
        self.link.send(orders.RunOrder(run_uid=uid, start=ticket))

    def times(self, uids: list[str]) -> list[float]:
        """When each line was written."""
        files = [self.folder / uid for uid in uids if (self.folder / uid).exists()]
        return sorted(float(line) for file in files for line in file.read_text().split())

    async def copies(self, runs: int, seconds: float = 120) -> None:
        """Waits until a copy run after the first `runs` copies."""
        await eventually(lambda: self.times(self.uids[runs:]), seconds=seconds, what="it copies")

    def stood_still(self, since: float) -> float:
        """The longest time without a line after `since`."""
        at = self.times(self.uids)
        return max(later - max(earlier, since) for earlier, later in pairwise(at) if later > since)


@contextlib.asynccontextmanager
async def linked(folder: Path, *sparks: Spark) -> AsyncIterator[OneTask]:
    """A worker's link with a task."""
    greeting = wire.WorkerGreeting(worker_cluster="wc", worker_id="w:8083", incarnation="1")
    task = OneTask(folder)
    link = task.link = SparkLink(Drivers(",".join(s.address for s in sparks)), greeting, may_renew=lambda: True)
    runs = asyncio.create_task(link.run(task))
    try:
        yield task
    finally:
        runs.cancel()
        await asyncio.wait([runs])


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[list[Spark]]:
    """A driver and its standby, which start at the same time."""
    sparks = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        flags = {"standby": "true", "standby_idle_seconds": IDLE_SECONDS, "lease_seconds": 3}
        sparks.append(Spark(tmp_path / name, slots_per_worker=1, warm_slots="false", **flags))
    try:
        yield sparks
    finally:
        for spark in sparks:
            spark.process.send_signal(signal.SIGCONT)
            spark.kill()


def has_jvm(spark: Spark) -> bool:
    return any(p.is_running() and p.name() == "java" for p in spark.below())


async def test_a_standby_serves_when_the_driver_is_killed_and_ends_its_spark_when_it_is_left(
    drivers: list[Spark], tmp_path: Path
) -> None:
    first, second = drivers
    for spark in drivers:
        await spark.serving()
        assert not has_jvm(spark), "no Spark without a worker"
    async with linked(tmp_path, first, second) as task:
        await task.copies(0)
        assert "SPARK_STARTING" in task.reasons or "spark_started" in first.text()
        assert not has_jvm(second)
        first.kill()
        killed, runs = time.time(), len(task.uids)
        await task.copies(runs)
        print(f"stood still for {task.stood_still(killed):.1f} s after kill -9")
        assert task.stood_still(killed) < STANDS_STILL_SECONDS, second.text()
        assert max(task.times(task.uids[:runs])) < killed + 1, "nothing of the first one writes on"
        assert task.link is not None
        assert task.link.unfit == "", "it kept its tasks"
    await eventually(lambda: "spark_idle" in second.text(), what="its application ends")
    await eventually(lambda: not [p for p in second.below() if p.is_running() and p.name() == "java"])
    assert second.process.poll() is None


async def test_a_frozen_driver_is_left_for_the_standby(drivers: list[Spark], tmp_path: Path) -> None:
    first, second = drivers
    for spark in drivers:
        await spark.serving()
    async with linked(tmp_path, first, second) as task:
        await task.copies(0)
        first.process.send_signal(signal.SIGSTOP)
        frozen, runs = time.time(), len(task.uids)
        await task.copies(runs)
        print(f"stood still for {task.stood_still(frozen):.1f} s after SIGSTOP")
        before = task.times(task.uids[:runs])
        assert task.times(task.uids[runs:])[0] > before[-1] - 1, "one copies after the other"
        first.process.send_signal(signal.SIGCONT)
        await eventually(lambda: "lease_lapsed" in first.text() or "slot_lost" in first.text(), what="it lets go")
        assert len(task.uids) == runs + 1, "it stays where it is"
