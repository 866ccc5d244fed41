"""Builds a broker's parts and runs them: the only wiring."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keelman.broker.formatting import format_storage
from keelman.broker.jvm import BrokerFiles, BrokerJvm, broker_command, metrics_agent, started
from keelman.broker.old_self import fence_old_self, has_run
from keelman.broker.prepare import prepare
from keelman.broker.properties import advertised, local_host, quorum, server_properties, written
from keelman.broker.settings import Settings
from keelman.broker.storage import ensure_format
from keelman.broker.tls import Stores
from keelman.kafka.probe import ask_broker
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.lock_file import take_lock
from keelman.runtime.processes.ports import port_is_free, port_taken
from keelman.runtime.supervise import first_of
from keelman.runtime.tls.certificates import shown_time

if TYPE_CHECKING:
    from keelman.rpc.server import Health

log = get_logger()

CHECK_SECONDS = 2.0
PORT_SECONDS = 2.0  # a broker that was killed a moment ago still holds its ports for some milliseconds
DRAIN_SHARE = 0.75  # of the grace period; the rest is for the kill and its log lines


class CertificateEnded(FailedPrecondition):
    """The broker's certificate has expired, and the broker cannot be called to read a newer one."""

    reason = "CERTIFICATE_ENDED"


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs the broker until `stop`, then drains it.

    Raises InvalidArgument, FailedPrecondition or Unavailable if it cannot start, Internal if it ends by itself, and
    CertificateEnded if it needs a restart.
    """
    properties, stores = server_properties(settings), Stores.of(settings)
    if stores is not None:
        stores.check()
    files = BrokerFiles(settings.home.absolute())
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_alone(files, settings.data_folders))
        health: Health | None = None
        if settings.health_socket is not None:
            from keelman.rpc.server import serve  # noqa: PLC0415  (a third of what else is loaded)

            health = await stack.enter_async_context(serve(socket=settings.health_socket, label="broker"))
        command: list[str] = []
        await first_of(stop.wait(), _prepare(settings, files, properties, command))
        if stop.is_set():
            return
        jvm = await stack.enter_async_context(started(command, files))
        ended: CertificateEnded | None = None
        try:
            await first_of(stop.wait(), _live(settings, stores, jvm, health, time.monotonic()))
        except CertificateEnded as error:
            ended = error
        if health is not None:
            await health.unready()
        begun = time.monotonic()
        orderly = await jvm.drain(settings.grace_seconds * DRAIN_SHARE)
        log.info("broker_ended", orderly=orderly, seconds=round(time.monotonic() - begun, 2))
        if ended is not None:
            raise ended


async def _prepare(settings: Settings, files: BrokerFiles, properties: dict[str, str], command: list[str]) -> None:
    """Does everything before the start; appends the command line to `command`."""
    await _ports_free(settings)
    prepared = await prepare(lambda step: log.info("broker_preparing", step=step))
    # The process owns the file and writes it at each start, so that settings alone decide.
    write_file(files.properties, written(properties).encode("latin-1"))

    async def format(cluster_id: str) -> None:
        log.info("broker_formatting", folder=str(files.data), cluster_id=cluster_id)
        await format_storage(prepared.java, prepared.jars, settings, files, cluster_id)

    owner = await ensure_format(files.data, cluster_id=settings.cluster_id, node_id=settings.node_id, format=format)

    def line(file: Path, agent: Sequence[str] = ()) -> list[str]:
        archive = prepared.archive_options
        return broker_command(prepared.java, prepared.jars, settings, files, archive, properties=file, agent=agent)

    if settings.controller and len(quorum(settings)) == 1 and has_run(files.data):
        await fence_old_self(properties, files, line)
        await _ports_free(settings)
    log.info("broker_starting", cluster_id=owner.cluster_id, node_id=owner.node_id, java=prepared.java.version)
    command += line(files.properties, await metrics_agent(settings, files))


async def _live(settings: Settings, stores: Stores | None, jvm: BrokerJvm, health: Health | None, begun: float) -> None:
    """Watches the broker from its start until it ends by itself, which raises Internal."""
    host = local_host(settings)
    renewals = [] if stores is None else [partial(_follow, settings, stores, host, stores.stamp(), stores.facts().end)]
    client = {} if stores is None else stores.client
    await jvm.ready(host, settings.port, settings.node_id, client, first=settings.start_seconds)
    log.info("broker_ready", bootstrap=advertised(settings), pid=jvm.pid, seconds=round(time.monotonic() - begun, 2))
    if health is not None:
        await health.ready()
    await first_of(jvm.ended(), _watch(settings, host, client, health), *(follow() for follow in renewals))


async def _follow(settings: Settings, stores: Stores, host: str, stamp: tuple[int, ...], end: datetime) -> None:
    """Has the broker read its certificates again whenever their files were written again since `stamp`. Unusable files
    are tried again: a renewal may write one file after the other.

    Raises CertificateEnded if the broker's certificate expired at `end` and the files have a good one: no client can
    connect to the broker any more, so that only a restart loads the new certificate.
    """
    outage = Backoff()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        present_stamp = stores.stamp()
        if not present_stamp or present_stamp == stamp:
            continue
        try:
            await stores.reload(host, settings.port, settings.node_id)
            end = stores.facts().end
        except KeelmanError as error:
            if end <= datetime.now(UTC) and _is_good(stores):
                raise CertificateEnded(
                    f"the broker's certificate ended at {shown_time(end)}: restart it with the certificate in "
                    f"{stores.keystore} ({error.message})"
                ) from None
            if outage.is_new(error.message):
                log.warning("certificates_not_read", error=error.message)
            continue
        stamp = present_stamp
        outage.reset()
        log.info("certificates_read", keystore=str(stores.keystore))


def _is_good(stores: Stores) -> bool:
    """Tells whether the files can be used and the certificate has not expired."""
    try:
        stores.check()
        return stores.facts().end > datetime.now(UTC)
    except InvalidArgument:
        return False


async def _watch(settings: Settings, host: str, client: Mapping[str, str], health: Health | None) -> None:
    """Sets the health by the broker's answers. It is for the owner to restart a broker that is silent for long."""
    answers = True
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        answer = await ask_broker(host, settings.port, client)
        now = answer is not None and answer.serves(settings.node_id)
        if now == answers:
            continue
        answers = now
        if now:
            log.info("broker_answers_again")
        else:
            log.warning("broker_silent", bootstrap=advertised(settings))
        if health is not None:
            await (health.ready() if now else health.unready())


async def _ports_free(settings: Settings) -> None:
    """Raises Unavailable (PORT_TAKEN) with the setting and the port on which another process listens."""
    end = time.monotonic() + PORT_SECONDS
    used = [("broker", settings.port)]
    if settings.controller:
        used.append(("broker.controller", settings.controller_port))
    if settings.metrics_port:
        used.append(("broker.metrics", settings.metrics_port))
    for label, port in used:
        while not port_is_free(settings.host, port):
            if time.monotonic() > end:
                raise port_taken(label, settings.host, port)
            await asyncio.sleep(0.05)


@contextlib.contextmanager
def _alone(files: BrokerFiles, data_folders: Sequence[str] = ()) -> Iterator[None]:
    """Creates and locks the home; the kernel releases the lock however this process ends."""
    try:
        files.create()
        for folder in data_folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
        stream = files.lock.open("a+")
    except OSError as error:
        message = f"broker.home, broker.data_folders: {error.filename or files.root} cannot be used: {error.strerror}"
        raise FailedPrecondition(message) from None
    with stream:
        if holder := take_lock(stream):
            raise FailedPrecondition(
                f"broker.home: {files.root} is in use by process {holder}: stop it, or give another home",
                reason="HOME_IN_USE",
            )
        yield
