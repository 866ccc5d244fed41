"""Builds the parts of a worker of Apache Kafka Connect and runs them: the only wiring."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import javaproperties

from keelman.kafka_connect.jvm import WorkerJvm, command_of, started
from keelman.kafka_connect.settings import Settings
from keelman.model.errors import Internal, InvalidArgument, Unavailable
from keelman.rpc.server import Health, serve
from keelman.runtime.home import private_folder
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.workers.properties.listeners import server_tls

log = get_logger()
LISTENERS = (("listeners", False), ("admin.listeners", True))
REFERENCE = "${"
READY_POLL_SECONDS = 0.3
CHECK_SECONDS = 2.0
ANSWER_SECONDS = 5.0
DRAIN_SHARE = 0.75  # of the grace period; the rest is for the kill and its log lines
ALIVE = (200, 401, 403)
"""Status codes of a healthy worker: it may require a password for its health too."""


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs the worker until `stop`, then drains it.

    Raises JavaMissing, FailedPrecondition or Unavailable if it cannot start, InvalidArgument for a keystore that it
    cannot start with, Internal if it ends by itself.
    """
    private_folder(settings.home)
    async with contextlib.AsyncExitStack() as stack:
        health: Health | None = None
        if settings.health_socket is not None:
            health = await stack.enter_async_context(serve(socket=settings.health_socket, label="kafka_connect"))
        command: list[str] = []
        await first_of(stop.wait(), _prepare(settings, command))
        if stop.is_set():
            return
        log.info("connect_starting", heap_mb=settings.heap_mb, url=settings.url)
        jvm = await stack.enter_async_context(started(command, settings.home.absolute()))
        await first_of(stop.wait(), _live(settings, jvm, health, time.monotonic()))
        if health is not None:
            await health.unready()
        begun = time.monotonic()
        orderly = await jvm.drain(settings.grace_seconds * DRAIN_SHARE)
        log.info("connect_ended", orderly=orderly, seconds=round(time.monotonic() - begun, 2))


async def _prepare(settings: Settings, command: list[str]) -> None:
    command += await command_of(settings, os.environ)


async def _live(settings: Settings, jvm: WorkerJvm, health: Health | None, begun: float) -> None:
    """Watches the worker from its start until it ends by itself, which is an error."""
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False, verify=False) as client:
        try:
            async with asyncio.timeout(settings.start_seconds):
                await first_of(jvm.ended(), _ready(client, settings.url))
        except Internal as error:
            refused = await asyncio.to_thread(refused_stores, settings.properties_file)
            if refused is None:
                raise
            raise refused from error
        except TimeoutError:
            raise Unavailable(
                f"the worker of Apache Kafka Connect did not answer on {settings.url} within "
                f"{settings.start_seconds:g} s: see its log",
                reason="CONNECT_NOT_READY",
            ) from None
        log.info("connect_ready", url=settings.url, pid=jvm.pid, seconds=round(time.monotonic() - begun, 2))
        if health is not None:
            await health.ready()
        await first_of(jvm.ended(), _watch(client, settings.url, health))


async def _ready(client: httpx.AsyncClient, url: str) -> None:
    while True:
        if await _answers(client, url):
            return
        await asyncio.sleep(READY_POLL_SECONDS)


async def _watch(client: httpx.AsyncClient, url: str, health: Health | None) -> None:
    """Sets the health by the worker's answers. It is for the agent to restart a worker that is silent for long."""
    answers = True
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        now = await _answers(client, url)
        if now == answers:
            continue
        answers = now
        if now:
            log.info("connect_answers_again")
        else:
            log.warning("connect_silent", url=url)
        if health is not None:
            await (health.ready() if now else health.unready())


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    """Tells whether the worker reports good health, as it does once it has read its plugins and joined its group."""
    try:
        return (await client.get(f"{url}/health")).status_code in ALIVE
    except httpx.HTTPError:
        return False


def refused_stores(properties_file: Path) -> InvalidArgument | None:
    """Returns the error in the keystore or truststore of its https listeners; None if no error is found.

    Call it only after Java failed to start with them, so that stores that Java accepts are never refused."""
    properties = javaproperties.loads(properties_file.read_text(encoding="utf-8"))
    if any(REFERENCE in value for key, value in properties.items() if ".ssl." in f".{key}"):
        return None  # only Connect can read these values
    return next(filter(None, (_refused(properties, key, admin=admin) for key, admin in LISTENERS)), None)


def _refused(properties: Mapping[str, str], key: str, *, admin: bool) -> InvalidArgument | None:
    if "https:" not in properties.get(key, "").lower():
        return None
    try:
        server_tls(properties, admin=admin)
    except InvalidArgument as error:
        return error
    return None
