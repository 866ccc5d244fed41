"""The faults: each strikes a running system while records flow, at moments that its seed determines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from chaos import (
    chaos_brokers,
    chaos_certificates,
    chaos_clocks,
    chaos_files,
    chaos_one_broker,
    chaos_pairs,
    chaos_rights,
    chaos_topics,
)
from chaos.chaos_links import (
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
from chaos.chaos_paths import PATHS, FileSink, Run
from chaos.chaos_scene import Scene
from chaos.chaos_system import (
    CLOCKS,
    OLD,
    OLDER,
    OWN_DISK,
    PLAIN,
    SECURE,
    WORKERS,
    Shape,
    System,
    below,
    holds_slot,
    strike,
)
from support.brokers.kafka_proxy import END_TXN, PRODUCE
from support.eventually import eventually

READING, SINKS = ("mirror", "file sink", "Kafka sink"), ("file sink", "Kafka sink")
SHORT, LONG, LONGER = 3.0, 12.0, 40.0
PIECE_BYTES = 128 * 1024
BOUNCES, EACH = 12, 3


@dataclass(frozen=True)
class Fault:
    """A fault of the matrix.

    `strike` causes it; `before` surrounds the whole scenario if something must be prepared; `cluster`: its slots run in
    the executors of a standalone cluster; `parts`: how many faults it is; `workers`: how many of them the system has;
    `brokers`: how many brokers; `broker`: the kind of a single broker; `spoils`: the system differs
    afterwards.
    """

    name: str
    strike: Strike
    paths: tuple[str, ...] = tuple(PATHS)
    before: Callable[[Sequence[Run]], contextlib.AbstractContextManager[None]] | None = None
    cluster: bool = False
    parts: int = 1
    workers: int = WORKERS
    brokers: int = 1
    broker: str = PLAIN
    spoils: bool = False

    @property
    def shape(self) -> Shape:
        """The shape of the system that the fault needs."""
        return Shape(self.cluster, self.workers, self.brokers, self.broker)


def in_turn(*faults: Fault) -> Fault:
    """One after another, each when the system has recovered from the one before."""

    async def do(scene: Scene) -> None:
        for number, fault in enumerate(faults):
            if number:
                await scene.recovered()
                scene.feed.go_on()
            await fault.strike(scene)

    brokers = max(a.brokers for a in faults)
    return Fault(", ".join(a.name for a in faults), do, parts=len(faults), brokers=brokers)


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
    """Sends kill -9, to one after another."""

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
            await eventually(lambda w=worker, c=ended: w.child is not c, what="it is started again")
            await scene.system.serving()

    return do


def executors_lost(*, slots_too: bool) -> Strike:
    """Sends kill -9 to an executor's JVM that runs slots, twice.

    Alone or with all processes in it, as when its host is lost.
    """

    async def do(scene: Scene) -> None:
        cluster = scene.system.cluster
        assert cluster is not None

        def with_slots() -> list[int]:
            return [e.pid for e in cluster.executors() if any(holds_slot(p) for p in below(e))]

        for _ in range(2):
            await scene.moment()
            victim = scene.shuffled(await eventually(with_slots, what="an executor runs slots"))[0]
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
    """The sink's disk is full for some time."""
    (run,) = (r for r in scene.runs if isinstance(r, FileSink))
    folder = run.file.parent

    def full() -> bool:
        disk = os.statvfs(folder)  # a write that did not fit is cut off again, so up to a piece of it may be free
        return disk.f_bavail * disk.f_frsize < PIECE_BYTES

    await eventually(full, every=0.05, what="the disk is full")
    scene.mark()
    await asyncio.sleep(scene.chance.uniform(1.0, 4.0))
    subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True)


@contextlib.contextmanager
def tiny_disk(runs: Sequence[Run]) -> Iterator[None]:
    """The file sink writes to a file system of its own with room for a third of the records."""
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
    """Whether a full disk is possible here."""
    return os.geteuid() == 0


FROM_3_7: Any = {"parts": 3, "broker": OLDER, "spoils": True}
NEW_CA: Any = {"broker": SECURE, "spoils": True}
FAULTS: dict[str, Fault] = {
    a.name: a
    for a in (
        Fault("slot killed", killed(slots)),
        Fault("slot frozen 3 s", frozen(slots, SHORT, together=True)),
        Fault("slot frozen 12 s", frozen(slots, LONG, together=True)),
        Fault("slot frozen 40 s", frozen(slots, LONGER, together=True)),  # past its session and its transaction
        Fault("Spark JVM killed", killed(jvm)),
        Fault("Spark JVM frozen 3 s", frozen(jvm, SHORT, together=True)),
        Fault("Spark JVM frozen 12 s", frozen(jvm, LONG, together=True)),
        Fault("Spark JVM frozen 40 s", frozen(jvm, LONGER, together=True)),  # given up after 30 s
        Fault("Spark service killed", killed(service)),
        Fault("Spark service frozen 12 s", frozen(service, LONG, together=True)),
        Fault("worker killed", killed(workers)),
        Fault("worker frozen 3 s", frozen(workers, SHORT, together=False)),
        Fault("worker frozen 12 s", frozen(workers, LONG, together=False)),
        Fault("broker killed", broker_ended(signal.SIGKILL)),
        Fault("broker restarted", broker_ended(signal.SIGTERM)),
        Fault("slot to Spark cut", cut(to_service)),
        Fault("slot to Spark slow", slow(to_service)),
        Fault("slot to broker cut", cut(to_broker)),
        Fault("slot to broker slow", slow(to_broker)),
        Fault("worker to Spark cut", cut(worker_to_service)),
        Fault("worker to Spark slow", slow(worker_to_service)),
        Fault("worker to broker cut", cut(worker_to_broker)),
        Fault("worker to broker slow", slow(worker_to_broker)),
        Fault("EndTxn late", late(END_TXN), TRANSACTIONAL),
        Fault("Produce late", late(PRODUCE), TRANSACTIONAL),
        Fault("EndTxn answer lost", answer_lost, TRANSACTIONAL),
        Fault("disk full", disk_full, ("file sink",), tiny_disk),
        Fault("workers bounced in order", bounced(signal.SIGTERM), parts=BOUNCES // EACH, workers=3),
        Fault("workers bounced by kill", bounced(signal.SIGKILL), parts=BOUNCES // EACH, workers=3),
        Fault("target topic made again", chaos_topics.target_made_anew, TRANSACTIONAL),
        Fault("source topic gets partitions", chaos_topics.source_grown, READING),
        Fault("target topic gets partitions", chaos_topics.target_grown, ("file source", "Java source", "Kafka sink")),
        Fault("batches refused as too large", chaos_topics.only_small_batches, TRANSACTIONAL),
        Fault("transactions' time lowered", chaos_one_broker.short_transactions, TRANSACTIONAL),
        Fault("broker's disk full", chaos_one_broker.disk_full, broker=OWN_DISK),
        Fault("broker of 3.9 upgraded", chaos_one_broker.upgraded, parts=2, broker=OLD, spoils=True),
        Fault("broker of 3.7 upgraded", chaos_one_broker.upgraded, parts=2, broker=OLDER, spoils=True),
        Fault("epochs used up", chaos_one_broker.epochs_used_up, TRANSACTIONAL),
        Fault("clocks of slots and workers set", chaos_clocks.set_forth_and_back("others"), broker=CLOCKS),
        Fault("broker's clock set", chaos_clocks.set_forth_and_back("broker"), broker=CLOCKS),
        Fault("sessions of 4 s", chaos_rights.sessions, broker=SECURE),
        Fault("rights taken and given back", chaos_rights.taken, parts=len(chaos_rights.RIGHTS), broker=SECURE),
        Fault("broker's certificate changed", chaos_certificates.certificate_changed, broker=SECURE),
        Fault("broker's CA changed, both trusted", chaos_certificates.authority_changed(overlapping=True), **NEW_CA),
        Fault("broker's CA changed at once", chaos_certificates.authority_changed(overlapping=False), **NEW_CA),
        *(Fault(name, strike, chaos_files.FILES) for name, strike in chaos_files.STRIKES.items()),
        Fault("broker restarted, slots frozen", chaos_pairs.restarted_while_frozen),
        Fault("slots killed, broker's disk full", chaos_pairs.killed_while_full, broker=OWN_DISK),
        Fault("executor killed", executors_lost(slots_too=False), cluster=True),
        Fault("executor and slots killed", executors_lost(slots_too=True), cluster=True),
        Fault("no fault", chaos_brokers.nothing, brokers=3),
        Fault("brokers rolled", chaos_brokers.rolled(), brokers=3),
        Fault("brokers rolled from 3.7 to 3.9 to 4.3", chaos_brokers.upgraded, brokers=3, **FROM_3_7),
        Fault("leaders moved", chaos_brokers.moved, brokers=3),
        Fault("partitions reassigned", chaos_brokers.reassigned, brokers=3),
        Fault("in-sync replica frozen", chaos_brokers.follower_frozen, brokers=3),
        Fault("transactions' leader killed", chaos_brokers.transactions_lost, brokers=3),
        Fault("groups' leader killed", chaos_brokers.groups_lost, brokers=3),
        Fault("offsets' leaders moved", chaos_pairs.offsets_moved, brokers=3),
        Fault("unclean election", chaos_brokers.unclean, READING, brokers=3),
        Fault("source topic made again", chaos_brokers.made_anew, READING, brokers=3),
        Fault("paused past offsets' retention", chaos_brokers.kept_out("pause"), SINKS, brokers=3),
        Fault("stopped past offsets' retention", chaos_brokers.kept_out("stop"), SINKS, brokers=3),
    )
}
