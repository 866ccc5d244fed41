"""Faults of a cluster of three brokers: its brokers, the leaders of partitions, their replicas and their logs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from chaos.chaos_kafka import LOOK, Partition
from chaos.chaos_links import Strike
from chaos.chaos_one_broker import raise_features
from chaos.chaos_paths import Run
from chaos.chaos_scene import Scene
from chaos.chaos_system import GROUP, NEW, OLD
from keelman.kafka.groups.changes import GroupChanges
from keelman.model.errors import Unavailable
from support.brokers.cluster_parts import GROUPS, TRANSACTIONS, coordinating
from support.eventually import eventually
from support.numbered import Number, parsed

BLINK, LONG = 2.0, 10.0
"""Less than the time until a frozen broker is given up, and more."""
PAST_SECONDS = 300.0


def fed(runs: Iterable[Run]) -> list[Partition]:
    """The partitions that are copied."""
    return [read for run in runs if run.feed_topic for read in run.read]


def touched(runs: Iterable[Run]) -> list[Partition]:
    """All partitions that are read or written."""
    return [*fed(runs), *(written for run in runs for written in run.output)]


async def nothing(scene: Scene) -> None:
    """The baseline for the latencies of all other faults."""
    await scene.moment()


def rolled(brokers: int = 3) -> Strike:
    """Stops and restarts this many brokers in turn, as in an update."""

    async def do(scene: Scene) -> None:
        trio = scene.system.trio
        for node in scene.shuffled(list(trio.brokers))[:brokers]:
            await scene.moment()
            scene.mark()
            await trio.stop(node)
            await trio.restart(node)
            await trio.whole()

    return do


async def upgraded(scene: Scene) -> None:
    """Stops each broker in turn and starts it as a broker of Kafka 3.9, then each as a broker of 4.3.

    At the end the cluster's features are those of 4.3.
    """
    trio = scene.system.trio
    for module in (OLD, NEW):
        for node in scene.shuffled(list(trio.brokers)):
            await scene.moment()
            scene.mark()
            await trio.stop(node)
            trio.brokers[node].module = module
            await trio.restart(node)
            await trio.whole()
        await scene.recovered()
        scene.feed.go_on()
    await scene.moment()
    await raise_features(scene)
    await scene.moment()


async def moved(scene: Scene) -> None:
    """Moves every partition's leader in order, to a broker that is the preferred one from then on; twice."""
    trio = scene.system.trio
    for _ in range(2):
        await scene.moment()
        scene.mark()
        for topic, partition in touched(scene.runs):
            now = await trio.led(topic, partition)
            others = [node for node in now.replicas if node != now.leader]
            await trio.move_leader(topic, partition, scene.chance.choice(others))


async def reassigned(scene: Scene) -> None:
    """Every partition loses its leader's replica, and gets it again, which copies the partition and then leads it."""
    trio = scene.system.trio
    await scene.moment()
    scene.mark()
    for topic, partition in touched(scene.runs):
        leader = await trio.leader_of(topic, partition)
        others = [node for node in (await trio.led(topic, partition)).replicas if node != leader]
        await trio.reassign(topic, partition, others)
        await trio.reassign(topic, partition, [leader, *others])
        await trio.elect(topic, partition)


async def follower_frozen(scene: Scene) -> None:
    """Freezes a broker that leads none of the partitions but is in sync for each.

    All acknowledgements wait for it until the cluster gives it up.
    """
    trio = scene.system.trio
    node = scene.chance.choice(list(trio.brokers))
    for topic, partition in touched(scene.runs):
        now = await trio.led(topic, partition)
        if now.leader == node:
            await trio.move_leader(topic, partition, scene.chance.choice([n for n in now.replicas if n != node]))
    for seconds in (BLINK, LONG):
        await scene.moment()
        scene.mark()
        trio.freeze(node)
        try:
            await asyncio.sleep(seconds)
        finally:
            trio.thaw(node)
    await trio.whole()


async def _lost(scene: Scene, topic: str, names: Iterable[str]) -> None:
    trio = scene.system.trio
    partitions = await trio.partitions(topic)
    for partition in sorted({coordinating(name, partitions) for name in names}):
        await scene.moment()
        node = await trio.leader_of(topic, partition)
        scene.mark()
        await trio.kill(node)
        await trio.given_up(node)
        await trio.restart(node)
        await trio.whole()


async def transactions_lost(scene: Scene) -> None:
    """Sends kill -9 to the brokers that lead the transactions' partitions, one after another."""
    await _lost(scene, TRANSACTIONS, (run.transactional_id for run in scene.runs if run.transactional_id))


async def groups_lost(scene: Scene) -> None:
    """Sends kill -9 to the brokers that coordinate the workers' group and the sinks', one after another."""
    await _lost(scene, GROUPS, (GROUP, *(run.group for run in scene.runs if run.group)))


async def unclean(scene: Scene) -> None:
    """The copied topic loses its tail: one replica misses it, the other, which has it, is lost, and the first leads.

    Nothing is fed from the loss to the election, so that the lost records are known.
    """
    trio, feed = scene.system.trio, scene.feed
    there, behind = scene.shuffled(list(trio.brokers))[:2]
    topics = sorted({topic for topic, _ in fed(scene.runs)})
    await scene.hold()
    await asyncio.to_thread(scene.topics.set, topics, "min.insync.replicas", "1")
    for topic, partition in fed(scene.runs):
        await trio.reassign(topic, partition, [there, behind])
        await trio.elect(topic, partition)
    feed.release()
    await scene.moment()
    trio.freeze(behind)
    try:
        for topic, partition in fed(scene.runs):
            await trio.in_sync(topic, partition, {there})
        await scene.moment()
        await feed.hold()
        scene.mark()
        await trio.kill(there)
    finally:
        trio.thaw(behind)
    await trio.given_up(there)
    for topic, partition in fed(scene.runs):
        await trio.elect(topic, partition, unclean=True)
        await trio.led_by(topic, partition, behind)
    await asyncio.to_thread(_take_up_what_is_gone, scene)
    scene.release()
    await trio.restart(there)
    await trio.whole()
    await asyncio.to_thread(scene.topics.set, topics, "min.insync.replicas", "2")


def _take_up_what_is_gone(scene: Scene) -> None:
    for run in scene.runs:
        held = {parsed(value) for at in run.read for _, value in scene.topics.read(at)}
        value = scene.feed.given[run.name]
        numbers = {Number(s.task, n) for s, count in zip(run.streams, value, strict=True) for n in range(count)}
        run.gone = frozenset(numbers - held)
        scene.notes.append(f"{run.kind}: {len(run.gone)} records lost by the source itself")


async def made_anew(scene: Scene) -> None:
    """When all is copied, deletes the source topics, creates them again and feeds more records."""
    await scene.moment()
    await scene.hold()
    await scene.recovered()
    scene.mark()
    for run in scene.runs:
        await asyncio.to_thread(scene.topics.make_anew, run.feed_topic, len(run.read))
    scene.release()
    await scene.moment()


def kept_out(how: str) -> Strike:
    """Pauses or stops the sinks until their groups lose their offsets, or for a minute and a half; then resumes."""

    async def do(scene: Scene) -> None:
        await scene.moment()
        for run in scene.runs:
            await scene.system.ask("PUT", f"/connectors/{run.name}/{how}")

        # The client library's own request about a group ends the process when the group's coordinator moves meanwhile.
        client = {"bootstrap.servers": scene.system.bootstrap}
        groups = [GroupChanges(client, run.group, client_id=LOOK) for run in scene.runs]

        async def expired() -> bool:
            try:
                return not any([await group.offsets() for group in groups])
            except Unavailable:  # its coordinator is away
                return False

        try:
            await eventually(expired, seconds=PAST_SECONDS, every=1.0)
            scene.notes.append("the groups' offsets expired")
        except AssertionError:
            scene.notes.append("the groups' offsets were kept")
        with contextlib.suppress(AssertionError):
            await scene.moment()
        scene.mark()
        for run in scene.runs:
            await scene.system.ask("PUT", f"/connectors/{run.name}/resume")

    return do
