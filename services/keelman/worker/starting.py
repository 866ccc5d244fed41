"""The ways to start a worker, and the lines that each prints on the terminal before its logs."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from keelman.connect.config.references import references
from keelman.connect.config.secret_keys import without_users
from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.farewell import client_id_of
from keelman.kafka.groups.protocol import GroupClient
from keelman.rpc.server import serve
from keelman.runtime.home import Home
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.version import version
from keelman.worker.group.farewell import LastFarewell, Note
from keelman.worker.rest.front.front import Front
from keelman.worker.settings import Settings
from keelman.worker.spark_beside import SparkBeside
from keelman.worker.storage.store import StoreCallbacks, WorkerStore
from keelman.worker.tasks.link import CopyRunListener, SparkLink
from keelman.workers.properties.known_properties import ignored, near, unknown
from keelman.workers.properties.typed import REBALANCE_DELAY, WorkerProperties

log = get_logger()
JOIN_MARGIN_MS = 10_000
LOOKS = 1200
LOOK_SECONDS = 0.05
REGISTRY = "value.converter.schema.registry.url"


def open_store(
    properties: WorkerProperties, worker: str, callbacks: StoreCallbacks
) -> AbstractAsyncContextManager[WorkerStore]:
    """Returns the worker's tables: from three topics, or a file and memory."""
    if properties.standalone:
        from keelman.worker.standalone import StandaloneStore  # noqa: PLC0415

        return StandaloneStore.open(properties, worker_id=worker, callbacks=callbacks)
    return WorkerStore.open(properties, worker_id=worker, callbacks=callbacks)


@contextlib.asynccontextmanager
async def open_group(properties: WorkerProperties, worker: str) -> AsyncIterator[GroupClient]:
    """Opens the group whose member the worker is."""
    if properties.standalone:
        from keelman.worker.standalone import GroupOfOne  # noqa: PLC0415

        yield GroupOfOne()
        return
    timeout = properties.rebalance_ms + JOIN_MARGIN_MS
    async with low_level_client(properties.raw, client_id=client_id_of(worker), timeout_ms=timeout) as client:
        yield GroupClient(
            client, properties.group_id, session_ms=properties.session_ms, rebalance_ms=properties.rebalance_ms
        )


def waiting_ms(settings: Settings, properties: WorkerProperties) -> int:
    """Returns how long the work of a member that vanished waits for it to come back.

    Under an agent not at all unless it is set: the agent runs the farewell for each worker that dies, so a worker that
    vanishes without one has lost its host, or is frozen.
    """
    is_looked_after = settings.member_file is not None and REBALANCE_DELAY not in properties.raw
    return 0 if is_looked_after else properties.rebalance_delay_ms


def open_farewell(
    stack: contextlib.AsyncExitStack, settings: Settings, properties: WorkerProperties
) -> Callable[[Note | None], None]:
    """Returns the receiver of the worker's place, for a farewell after its death; an agent does that itself."""
    if properties.standalone or settings.member_file is not None:
        return lambda note: None
    farewell = LastFarewell(properties.raw)
    stack.callback(farewell.close)
    return farewell.note


@contextlib.asynccontextmanager
async def open_health(socket: Path | None) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Yields the function to call once the worker is ready. A worker started by hand has GET /health instead, and no
    server."""
    if socket is None:
        yield _nobody_asks
        return
    async with serve(socket=socket) as health:
        yield health.ready


async def _nobody_asks() -> None:
    return


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """The address of a Spark service. `problem` tells why it is not there, empty where that is not known."""

    address: str
    problem: Callable[[], str] = str


@contextlib.asynccontextmanager
async def open_spark(
    settings: Settings, properties: WorkerProperties, front: Front, stop: asyncio.Event
) -> AsyncIterator[SparkPlace]:
    """Yields the place of the worker's Spark service: the named service, else a service that runs beside it for the
    block."""
    beside: SparkBeside | None = None
    if not settings.spark_address:
        flags = [
            f"--node={front.worker}",
            f"--log-level={settings.log_level}",
            f"--log-json={str(settings.log_json).lower()}",
        ]
        if settings.reports_bootstrap_servers:
            flags.append(f"--reports-bootstrap-servers={settings.reports_bootstrap_servers}")
        if settings.reports_properties_file is not None:
            flags.append(f"--reports-properties-file={settings.reports_properties_file}")
        beside = SparkBeside.of(Home.of(settings.home), front.worker, flags)
    if not settings.log_json:
        print_start(settings, properties, front.url, beside.log_file if beside is not None else None)
    log_notes(properties.raw, standalone=properties.standalone)
    if beside is None:
        yield SparkPlace(settings.spark_address)
        return
    async with beside.running(stop):
        yield SparkPlace(beside.address, lambda: beside.problem)


async def run_link(link: SparkLink, address: str, runs: CopyRunListener) -> None:
    """Runs the link for ever and has it notify `runs`.

    First gives a Spark service that starts beside the worker its time, in silence.
    """
    socket = Path(address.removeprefix("unix:"))
    for _ in range(LOOKS if address.startswith("unix:") else 0):
        if socket.exists():
            break
        await asyncio.sleep(LOOK_SECONDS)
    await link.run(runs)


def print_start(settings: Settings, properties: WorkerProperties, url: str, spark_log: Path | None) -> None:
    """Prints a few lines for the user who has just started it, before its logs."""
    lines = {"REST": url}
    if properties.standalone:
        lines |= {"standalone": f"no group; offsets in {properties.offset_file}"}
        lines |= {"connectors": ", ".join(settings.connector_files) or "none yet: POST /connectors"}
    else:
        lines |= {"group": properties.group_id}
        if settings.worker_cluster:
            lines |= {"cluster": settings.worker_cluster}
        topics = (properties.config_topic, properties.offset_topic, properties.status_topic)
        lines |= {"topics": ", ".join(topic.name for topic in topics)}
    lines |= {"Kafka": properties.raw["bootstrap.servers"]}
    if registry := properties.raw.get(REGISTRY, ""):
        lines |= {"registry": without_users(registry)}
    lines |= {"Spark": settings.spark_address or f"its own service; its log is {spark_log}"}
    shown = "".join(f"  {name:<11}{text}\n" for name, text in lines.items())
    print(f"keelman {version()}: a worker for Kafka Connect's clients\n{shown}", file=sys.stderr, end="", flush=True)


def log_notes(properties: Mapping[str, str], *, standalone: bool) -> None:
    """Logs one line for ignored properties, one for unknown ones, and one for references without a value."""
    if reasons := ignored(properties, standalone=standalone):
        log.warning("worker_properties_ignored", **reasons)
    if keys := unknown(properties):
        log.warning(
            "worker_properties_unknown",
            keys=", ".join(map(near, keys)),
            note="they are accepted, and nothing reads them",
        )
    if keys := sorted(key for key, text in properties.items() if references(text)):
        log.warning(
            "worker_properties_unresolved",
            keys=", ".join(keys),
            note="config.providers have no value for the reference: it stays as it is, as in Connect",
        )
