"""Two simultaneous faults of a system."""

from __future__ import annotations

import signal

from chaos.chaos_one_broker import disk_full
from chaos.chaos_scene import Scene
from chaos.chaos_system import GROUP, strike
from support.brokers.cluster_parts import GROUPS, coordinating

RESTARTS, KILLS, MOVES = 2, 3, 6
LONGEST_APART = 3.0


async def restarted_while_frozen(scene: Scene) -> None:
    """All slots are frozen while the broker is ended, in order or by a kill, and started again."""
    broker = scene.system.broker
    for _ in range(RESTARTS):
        await scene.moment()
        scene.mark()
        struck = [p.pid for p in scene.system.spark.slots() if strike(signal.SIGSTOP, p.pid)]
        try:
            await scene.pause(LONGEST_APART)
            await broker.end(scene.chance.choice((signal.SIGTERM, signal.SIGKILL)))
            await broker.start()
            await scene.pause(LONGEST_APART)
        finally:
            for pid in struck:
                strike(signal.SIGCONT, pid)


async def killed_while_full(scene: Scene) -> None:
    """The disk of the broker's log is full, and all slots are killed, again and again."""
    await disk_full(scene, _kill_now_and_then)


async def _kill_now_and_then(scene: Scene) -> None:
    for _ in range(KILLS):
        await scene.pause(LONGEST_APART)
        for process in scene.system.spark.slots():
            strike(signal.SIGKILL, process.pid)


async def offsets_moved(scene: Scene) -> None:
    """The partitions of offsets move to other leaders, again and again, also during commits."""
    trio = scene.system.trio
    groups = await trio.partitions(GROUPS)
    remaining = {(GROUPS, coordinating(run.group, groups)) for run in scene.runs if run.group}
    for topic in {f"{GROUP}-offsets", *(t for run in scene.runs for t in run.transactional if t != run.out_topic)}:
        remaining |= {(topic, partition) for partition in range(await trio.partitions(topic))}
    for _ in range(MOVES):
        await scene.moment()
        scene.mark()
        for topic, partition in sorted(remaining):
            now = await trio.led(topic, partition)
            await trio.move_leader(topic, partition, scene.chance.choice([n for n in now.replicas if n != now.leader]))
