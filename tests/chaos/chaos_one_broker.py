"""Faults of a single broker: its properties, its disk, its version."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

from chaos.chaos_links import Strike
from chaos.chaos_scene import Scene
from chaos.chaos_system import NEW
from support.brokers.broker import SHORT_LIVED
from support.kafka.producers import LAST_EPOCH, set_feature, write_epoch

SHORT_MS = 5_000
"""Less than the timeout of any transaction of ours."""
TOOK_SECONDS = 90.0
FULL_SECONDS = 20.0
FEATURES = {"metadata.version": 30, "transaction.version": 2}
"""The features of Kafka 4.3, in the order in which they may be raised."""
CHUNK = bytes(1 << 20)


async def short_transactions(scene: Scene) -> None:
    """Restarts the broker with a `transaction.max.timeout.ms` below ours, and once more with its own.

    Errors meanwhile name both numbers, and the failed tasks are restarted by hand.
    """
    broker = scene.system.broker
    flags = broker.flags
    await scene.moment()
    scene.mark()
    await broker.end(signal.SIGKILL)
    broker.flags = (*flags, SHORT_LIVED[1] + f",transaction.max.timeout.ms={SHORT_MS}")
    await broker.start()
    await scene.failed(TOOK_SECONDS)
    broker.flags = flags
    await broker.end(signal.SIGKILL)
    await broker.start()
    await scene.start_failed()


async def disk_full(scene: Scene, meanwhile: Strike | None = None) -> None:
    """The disk of the broker's log is full, which may end the broker. Then space is freed, and it is restarted."""
    broker, ballast = scene.system.broker, scene.system.data / "ballast"
    await scene.moment()
    scene.mark()
    await asyncio.to_thread(_fill, ballast)
    if meanwhile is not None:
        await meanwhile(scene)
    try:
        await asyncio.wait_for(broker.ended(FULL_SECONDS), FULL_SECONDS)
        scene.notes.append("the broker ended of it")
    except TimeoutError:
        scene.notes.append("the broker did not end of it")
    ballast.unlink()
    await broker.end(signal.SIGKILL)
    await broker.start()
    await scene.start_failed()


def _fill(ballast: Path) -> None:
    """Writes until the disk is full."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(CHUNK):
            pass


async def epochs_used_up(scene: Scene) -> None:
    """Each producer is close to the last epoch of its id, as after 32,764 transactions: another id follows soon."""
    broker = scene.system.broker
    await scene.moment()
    scene.mark()
    for run in scene.runs:
        await write_epoch(scene.system.open_bootstrap, run.transactional_id, LAST_EPOCH - 3)
    await broker.end(signal.SIGKILL)
    await broker.start()
    await scene.recovered()
    await scene.moment()


async def upgraded(scene: Scene) -> None:
    """An old broker is ended and started as one of Kafka 4.3, then the cluster gets the features of 4.3.

    Transactions of version 2 then follow those of version 1.
    """
    broker = scene.system.broker
    await scene.moment()
    scene.mark()
    await broker.end()
    broker.module = NEW
    await broker.start()
    await scene.recovered()
    scene.feed.go_on()
    await scene.moment()
    await raise_features(scene)
    await scene.moment()


async def raise_features(scene: Scene) -> None:
    """Sets the cluster's features to those of Kafka 4.3."""
    for feature, level in FEATURES.items():
        await set_feature(scene.system.open_bootstrap, feature, level)
