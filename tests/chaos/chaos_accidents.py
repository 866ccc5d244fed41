"""The accidents: each strikes a running system while records flow, at moments that its seed chose."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import chaos_brokers
import psutil
from chaos_links import (
    TRANSACTIONAL,
    Strike,
    answer_lost,
    cut,
    late,
    slow,
    to_broker,
    to_service,
    worker_to_broker,
    worker_to_service,
)
from chaos_paths import PATHS, FileSink, Run
from chaos_scene import Scene
from chaos_system import WORKERS, System, below, holds_slot, strike

from keelman.testing.eventually import eventually
from keelman.testing.kafka_proxy import END_TXN, PRODUCE

READING, SINKS = ("mirror", "file sink", "Kafka sink"), ("file sink", "Kafka sink")
SHORT, LONG, LONGER = 3.0, 12.0, 40.0
PIECE_BYTES = 128 * 1024
BOUNCES, EACH = 12, 3


@dataclass(frozen=True)
class Accident:
    """`strike` does it; `before` goes around the whole scenario where something must be made ready; `cluster` says
    that its slots run in the executors of a standalone cluster, `parts` how many accidents it is, `workers` how many
    of them the system has, `brokers` how many brokers."""

    name: str
    strike: Strike
    paths: tuple[str, ...] = tuple(PATHS)
    before: Callable[[Sequence[Run]], contextlib.AbstractContextManager[None]] | None = None
    cluster: bool = False
    parts: int = 1
    workers: int = WORKERS
    brokers: int = 1

    @property
    def system(self) -> tuple[bool, int, int]:
        """What the system has to be like: on a standalone cluster, with how many workers, and how many brokers."""
        return self.cluster, self.workers, self.brokers


def in_turn(*accidents: Accident) -> Accident:
    """One after another, each when the one before it is got over."""

    async def do(scene: Scene) -> None:
        for number, accident in enumerate(accidents):
            if number:
                await scene.recovered()
                scene.feed.go_on()
            await accident.strike(scene)

    brokers = max(a.brokers for a in accidents)
    return Accident(", ".join(a.name for a in accidents), do, parts=len(accidents), brokers=brokers)


def slots(system: System) -> list[int]:
    """Process ids of all slots."""
    return [p.pid for p in system.spark.slots()]


def jvm(system: System) -> list[int]:
    """Spark's JVM."""
    return [p.pid for p in system.spark.jvm()]


def service(system: System) -> list[int]:
    """The Spark service's own process."""
    assert system.spark.child is not None
    return [system.spark.child.pid]


def workers(system: System) -> list[int]:
    """All workers."""
    return [w.child.pid for w in system.workers if w.child is not None]


def killed(who: Callable[[System], list[int]]) -> Strike:
    """kill -9, one after another."""

    async def do(scene: Scene) -> None:
        for pid in scene.shuffled(who(scene.system)):
            await scene.moment()
            scene.mark()
            strike(signal.SIGKILL, pid)

    return do


def frozen(who: Callable[[System], list[int]], seconds: float, *, together: bool) -> Strike:
    """SIGSTOP, and SIGCONT after the time; all together, or one after another."""

    async def do(scene: Scene) -> None:
        pids = scene.shuffled(who(scene.system))
        groups = [pids] if together else [[pid] for pid in pids]
        for group in groups:
            await scene.moment()
            scene.mark()
            struck = [pid for pid in group if strike(signal.SIGSTOP, pid)]
            try:
                await asyncio.sleep(seconds)
            finally:
                for pid in struck:
                    strike(signal.SIGCONT, pid)

    return do


def bounced(number: int) -> Strike:
    """Worker after worker is ended by this signal and started again, as in a rolling update, all four times."""

    async def do(scene: Scene) -> None:
        for turn in range(BOUNCES):
            if turn and turn % EACH == 0:
                await scene.recovered()
                scene.feed.go_on()
            await scene.moment()
            scene.mark()
            worker = scene.system.workers[turn % len(scene.system.workers)]
            ended = worker.child
            assert ended is not None
            strike(number, ended.pid)
            await eventually(lambda w=worker, c=ended: w.child is not c, seconds=120, what="it is started again")
            await scene.system.serving()

    return do


def executors_lost(*, slots_too: bool) -> Strike:
    """kill -9 of an executor's JVM that runs slots, twice, alone or with all that runs in it, as when its host is
    lost."""

    async def do(scene: Scene) -> None:
        cluster = scene.system.cluster
        assert cluster is not None

        def with_slots() -> list[int]:
            return [e.pid for e in cluster.executors() if any(holds_slot(p) for p in below(e))]

        for _ in range(2):
            await scene.moment()
            victim = scene.shuffled(await eventually(with_slots, seconds=120, what="an executor runs slots"))[0]
            inside = below(psutil.Process(victim)) if slots_too else []
            scene.mark()
            for pid in (victim, *(p.pid for p in inside)):
                strike(signal.SIGKILL, pid)

    return do


def broker_ended(number: int) -> Strike:
    """The broker ends by this signal and is started again."""

    async def do(scene: Scene) -> None:
        await scene.moment()
        scene.mark()
        await scene.system.broker.end(number)
        await scene.system.broker.start()

    return do


async def disk_full(scene: Scene) -> None:
    """The sink's disk is full for a while."""
    (run,) = (r for r in scene.runs if isinstance(r, FileSink))
    folder = run.file.parent

    def full() -> bool:
        disk = os.statvfs(folder)  # what did not fit is cut off again, so up to a piece of a write may be free
        return disk.f_bavail * disk.f_frsize < PIECE_BYTES

    await eventually(full, seconds=120, every=0.05, what="the disk is full")
    scene.mark()
    await asyncio.sleep(scene.chance.uniform(1.0, 4.0))
    subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True)


@contextlib.contextmanager
def tiny_disk(runs: Sequence[Run]) -> Iterator[None]:
    """The file sink writes to a file system of its own that holds a third of what will come."""
    (run,) = (r for r in runs if isinstance(r, FileSink))
    folder = run.folder / f"{run.name}.disk"
    folder.mkdir()
    size = run.records * 100 // 3
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    run.move(folder / "out")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def may_mount() -> bool:
    """Whether a full disk can be had here."""
    return os.geteuid() == 0


ACCIDENTS: dict[str, Accident] = {
    a.name: a
    for a in (
        Accident("slot killed", killed(slots)),
        Accident("slot frozen 3 s", frozen(slots, SHORT, together=True)),
        Accident("slot frozen 12 s", frozen(slots, LONG, together=True)),
        Accident("Spark JVM killed", killed(jvm)),
        Accident("Spark JVM frozen 3 s", frozen(jvm, SHORT, together=True)),
        Accident("Spark JVM frozen 12 s", frozen(jvm, LONG, together=True)),
        Accident("Spark JVM frozen 40 s", frozen(jvm, LONGER, together=True)),  # given up after 30 s
        Accident("Spark service killed", killed(service)),
        Accident("Spark service frozen 12 s", frozen(service, LONG, together=True)),
        Accident("worker killed", killed(workers)),
        Accident("worker frozen 3 s", frozen(workers, SHORT, together=False)),
        Accident("worker frozen 12 s", frozen(workers, LONG, together=False)),
        Accident("broker killed", broker_ended(signal.SIGKILL)),
        Accident("broker restarted", broker_ended(signal.SIGTERM)),
        Accident("slot to Spark cut", cut(to_service)),
        Accident("slot to Spark slow", slow(to_service)),
        Accident("slot to broker cut", cut(to_broker)),
        Accident("slot to broker slow", slow(to_broker)),
        Accident("worker to Spark cut", cut(worker_to_service)),
        Accident("worker to Spark slow", slow(worker_to_service)),
        Accident("worker to broker cut", cut(worker_to_broker)),
        Accident("worker to broker slow", slow(worker_to_broker)),
        Accident("EndTxn late", late(END_TXN), TRANSACTIONAL),
        Accident("Produce late", late(PRODUCE), TRANSACTIONAL),
        Accident("EndTxn answer lost", answer_lost, TRANSACTIONAL),
        Accident("disk full", disk_full, ("file sink",), tiny_disk),
        Accident("workers bounced in order", bounced(signal.SIGTERM), parts=BOUNCES // EACH, workers=3),
        Accident("workers bounced by kill", bounced(signal.SIGKILL), parts=BOUNCES // EACH, workers=3),
        Accident("executor killed", executors_lost(slots_too=False), cluster=True),
        Accident("executor and slots killed", executors_lost(slots_too=True), cluster=True),
        Accident("no accident", chaos_brokers.nothing, brokers=3),
        Accident("brokers rolled", chaos_brokers.rolled(), brokers=3),
        Accident("leaders moved", chaos_brokers.moved, brokers=3),
        Accident("partitions reassigned", chaos_brokers.reassigned, brokers=3),
        Accident("in-sync replica frozen", chaos_brokers.follower_frozen, brokers=3),
        Accident("transactions' leader killed", chaos_brokers.transactions_lost, brokers=3),
        Accident("groups' leader killed", chaos_brokers.groups_lost, brokers=3),
        Accident("unclean election", chaos_brokers.unclean, READING, brokers=3),
        Accident("source topic made anew", chaos_brokers.made_anew, READING, brokers=3),
        Accident("paused past offsets' retention", chaos_brokers.kept_out("pause"), SINKS, brokers=3),
        Accident("stopped past offsets' retention", chaos_brokers.kept_out("stop"), SINKS, brokers=3),
    )
}
