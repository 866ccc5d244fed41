"""The accidents: each strikes a running system while records flow, at moments that its seed chose."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from chaos_paths import PATHS, FileSink, Run
from chaos_scene import Scene
from chaos_system import System, strike

from keelman.testing.eventually import eventually
from keelman.testing.kafka_proxy import END_TXN, PRODUCE, Catch, Fate
from keelman.testing.proxy import CLEAR, Proxy, Tunnel, Weather

SHORT, LONG = 3.0, 12.0
PIECE_BYTES = 128 * 1024
LINK_SECONDS = 8.0
CAUGHT_SECONDS = 90.0
SLOW = Weather(delay_seconds=0.15, bytes_per_second=400_000)
DEAD = Weather(frozen=True)
TRANSACTIONAL = ("file source", "mirror", "Kafka sink")


@dataclass(frozen=True)
class Accident:
    """`strike` does it; `before` goes around the whole scenario where something must be made ready."""

    name: str
    strike: Callable[[Scene], Awaitable[None]]
    paths: tuple[str, ...] = tuple(PATHS)
    before: Callable[[Sequence[Run]], contextlib.AbstractContextManager[None]] | None = None


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


def killed(who: Callable[[System], list[int]]) -> Callable[[Scene], Awaitable[None]]:
    """kill -9, one after another."""

    async def do(scene: Scene) -> None:
        for pid in scene.shuffled(who(scene.system)):
            await scene.moment()
            scene.mark()
            strike(signal.SIGKILL, pid)

    return do


def frozen(who: Callable[[System], list[int]], seconds: float, *, together: bool) -> Callable[[Scene], Awaitable[None]]:
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


def broker_ended(number: int) -> Callable[[Scene], Awaitable[None]]:
    """The broker ends by this signal and is started again."""

    async def do(scene: Scene) -> None:
        await scene.moment()
        scene.mark()
        await scene.system.broker.end(number)
        await scene.system.broker.start()

    return do


def cut(link: Callable[[Scene], tuple[Proxy, Callable[[Tunnel], bool]]]) -> Callable[[Scene], Awaitable[None]]:
    """Connections reset, closed, then dead without a word for longer than anybody waits."""

    async def do(scene: Scene) -> None:
        proxy, chosen = link(scene)
        for how in scene.chance.sample([proxy.reset, proxy.cut], 2):
            await scene.moment()
            scene.mark()
            how(chosen)
        await scene.moment()
        scene.mark()
        async with weather(proxy, chosen, DEAD):
            pass
        proxy.reset(chosen)

    return do


def slow(link: Callable[[Scene], tuple[Proxy, Callable[[Tunnel], bool]]]) -> Callable[[Scene], Awaitable[None]]:
    """Everything takes 150 ms each way and comes at 400 kB/s."""

    async def do(scene: Scene) -> None:
        proxy, chosen = link(scene)
        await scene.moment()
        scene.mark()
        async with weather(proxy, chosen, SLOW):
            pass

    return do


@contextlib.asynccontextmanager
async def weather(proxy: Proxy, chosen: Callable[[Tunnel], bool], bad: Weather) -> AsyncIterator[None]:
    """Bad weather for a while."""
    proxy.affects, proxy.weather = chosen, bad
    try:
        yield
        await asyncio.sleep(LINK_SECONDS)
    finally:
        proxy.weather = CLEAR


def to_broker(scene: Scene) -> tuple[Proxy, Callable[[Tunnel], bool]]:
    """The link between slots and broker."""
    return scene.system.kafka, scene.of_slots


def to_service(scene: Scene) -> tuple[Proxy, Callable[[Tunnel], bool]]:
    """The link between slots and Spark service."""
    return scene.system.slot_link, lambda _: True


def late(api_key: int) -> Callable[[Scene], Awaitable[None]]:
    """A request reaches the broker in the middle of the next transaction of its task."""

    async def one(scene: Scene, run: Run) -> None:
        kafka = scene.system.kafka
        held = kafka.catch(api_key, Fate.HOLD, transactional_id=run.transactional_id)
        request = await held.seen(CAUGHT_SECONDS)
        scene.mark()
        try:
            # Another EndTxn or a new producer ends the held one's transaction; a Produce after it is of the next.
            await _next(scene, request.transactional_id, Fate.WATCH, api_key)
        finally:
            held.release()
        with contextlib.suppress(ConnectionError, TimeoutError):
            scene.notes.append(f"{run.kind}: late {api_key} answered {(await held.answered(30))[:16].hex()}")

    async def do(scene: Scene) -> None:
        await scene.moment()
        for run in scene.runs:
            if run.kind in TRANSACTIONAL:
                await one(scene, run)

    return do


async def _next(scene: Scene, transactional_id: str, fate: Fate, api_key: int) -> Catch:
    kafka = scene.system.kafka
    if api_key == PRODUCE:
        await kafka.catch(END_TXN, fate, transactional_id=transactional_id).seen(CAUGHT_SECONDS)
    following = kafka.catch(PRODUCE, fate, transactional_id=transactional_id)
    await following.seen(CAUGHT_SECONDS)
    return following


async def answer_lost(scene: Scene) -> None:
    """A commit takes place, and its answer is lost."""
    await scene.moment()
    for run in scene.runs:
        if run.kind in TRANSACTIONAL:
            lost = scene.system.kafka.catch(END_TXN, Fate.LOSE_ANSWER, transactional_id=run.transactional_id)
            await lost.seen(CAUGHT_SECONDS)
            scene.mark()


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
        Accident("EndTxn late", late(END_TXN), TRANSACTIONAL),
        Accident("Produce late", late(PRODUCE), TRANSACTIONAL),
        Accident("EndTxn answer lost", answer_lost, TRANSACTIONAL),
        Accident("disk full", disk_full, ("file sink",), tiny_disk),
    )
}
