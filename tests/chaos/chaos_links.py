"""Faults of the links: cut, dead and slow ones, and requests that come late or whose answer is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from chaos.chaos_paths import Run
from chaos.chaos_scene import Scene
from support.brokers.kafka_proxy import END_TXN, PRODUCE, Catch, Fate
from support.proxy import CLEAR, Proxy, Tunnel, Weather, everyone

LINK_SECONDS = 8.0
CAUGHT_SECONDS = 300.0
SLOW = Weather(delay_seconds=0.15, bytes_per_second=400_000)
DEAD = Weather(frozen=True)
TRANSACTIONAL = ("file source", "Java source", "mirror", "Kafka sink")
Chosen = Callable[[Tunnel], bool]
Link = Callable[[Scene], tuple[Proxy, Chosen]]
Strike = Callable[[Scene], Awaitable[None]]


def cut(link: Link) -> Strike:
    """Connections are reset, closed, then dead without a packet for longer than any timeout."""

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


def slow(link: Link) -> Strike:
    """Everything takes 150 ms each way and arrives at 400 kB/s."""

    async def do(scene: Scene) -> None:
        proxy, chosen = link(scene)
        await scene.moment()
        scene.mark()
        async with weather(proxy, chosen, SLOW):
            pass

    return do


@contextlib.asynccontextmanager
async def weather(proxy: Proxy, chosen: Chosen, bad: Weather) -> AsyncIterator[None]:
    """Bad weather for LINK_SECONDS."""
    proxy.affects, proxy.weather = chosen, bad
    try:
        yield
        await asyncio.sleep(LINK_SECONDS)
    finally:
        proxy.weather = CLEAR


def to_broker(scene: Scene) -> tuple[Proxy, Chosen]:
    """The link between slots and broker."""
    return scene.system.kafka, scene.of_slots


def worker_to_broker(scene: Scene) -> tuple[Proxy, Chosen]:
    """The links between workers and broker."""
    return scene.system.kafka, scene.of_workers


def to_service(scene: Scene) -> tuple[Proxy, Chosen]:
    """The link between slots and Spark service."""
    return scene.system.slot_link, everyone


def worker_to_service(scene: Scene) -> tuple[Proxy, Chosen]:
    """The links between workers and Spark service."""
    return scene.system.worker_link, everyone


def late(api_key: int) -> Strike:
    """A request reaches the broker in the middle of the next transaction of its task."""

    async def one(scene: Scene, run: Run) -> None:
        kafka = scene.system.kafka
        held = kafka.catch(api_key, Fate.HOLD, transactional_id=run.transactional_id)
        request = await held.seen(CAUGHT_SECONDS)
        scene.mark()
        try:
            # Another EndTxn or a new producer ends the held request's transaction; a Produce after it is of the next.
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
