"""Faults of the topics themselves while they are copied: created again, given partitions, closed to large batches."""

from __future__ import annotations

import asyncio

from chaos.chaos_paths import Run
from chaos.chaos_scene import Scene
from chaos.chaos_system import GROUP
from support.eventually import eventually
from support.numbered import Number

AGAIN_SECONDS = 300.0
ADDED = 2
SMALL_BYTES = 2_000
"""Less than a batch of a commit interval's records, more than any record."""


async def target_made_anew(scene: Scene) -> None:
    """The target topics are deleted while records flow, and created again at once or a little later.

    The records of the former topic are lost with it; all records fed after the deletion must be in the new one.
    """
    for run in scene.runs:
        await scene.moment()
        scene.mark()
        gone = await asyncio.to_thread(scene.topics.delete, run.out_topic)
        values = list(scene.feed.given[run.name])
        await asyncio.sleep(scene.chance.choice((0.0, 2.0)))
        await asyncio.to_thread(scene.topics.create_once_gone, run.out_topic, run.partitions, gone)
        run.gone = frozenset(
            Number(s.task, n) for s, count in zip(run.streams, values, strict=True) for n in range(count)
        )
        scene.notes.append(f"{run.kind}: {len(run.gone)} records fed before its topic was deleted")
    scene.watch.count_anew()


async def source_grown(scene: Scene) -> None:
    """The source topics get partitions while records flow, to which all further records go."""
    await scene.moment()
    for run in scene.runs:
        await asyncio.to_thread(scene.topics.add_partitions, run.feed_topic, run.fed_partitions + ADDED)
    scene.mark()
    await scene.hold()
    await scene.recovered()  # earlier records are before it in a file, too
    for run in scene.runs:
        scene.feed.into[run.name] = list(range(run.fed_partitions, run.fed_partitions + ADDED))
        run.fed_partitions += ADDED
    scene.release()
    for run in scene.runs:
        if run.out_topic:
            await eventually(lambda r=run: _grown(scene, r), seconds=AGAIN_SECONDS, what=f"{run.kind}: its copy grows")
            run.partitions += ADDED
    scene.watch.count_anew()
    await scene.moment()


async def _grown(scene: Scene, run: Run) -> bool:
    return len(await asyncio.to_thread(scene.topics.partitions, run.out_topic)) == run.partitions + ADDED


async def target_grown(scene: Scene) -> None:
    """The target topics get partitions while records flow."""
    await scene.moment()
    scene.mark()
    for run in scene.runs:
        await asyncio.to_thread(scene.topics.add_partitions, run.out_topic, run.partitions + ADDED)
        run.partitions += ADDED
    scene.watch.count_anew()
    await scene.moment()


async def only_small_batches(scene: Scene) -> None:
    """The target topics, and those of offsets, accept small batches only, from one moment to another."""
    written = sorted({topic for run in scene.runs for topic in run.transactional} | {f"{GROUP}-offsets"})
    await scene.moment()
    scene.mark()
    await asyncio.to_thread(scene.topics.set, written, "max.message.bytes", str(SMALL_BYTES))
    await scene.moment()
    await scene.recovered()
    await asyncio.to_thread(scene.topics.set, written, "max.message.bytes", "1048588")
