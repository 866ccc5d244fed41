"""Builds the parts of the Spark service and runs them."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path

import keelman
from keelman.connectors.slot_parts import LOOP, USE_PLUGIN
from keelman.engine.slot.ending import end_of
from keelman.engine.slot.host import SlotOrder
from keelman.kafka.feed import ReportPublisher
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.server import MESH, Context, Health, RpcService, is_loopback, port_taken, serve
from keelman.runtime.home import writable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.ports import port_is_free
from keelman.runtime.supervise import Siblings, first_of
from keelman.spark.api import SparkCopyRunApi, Watchers
from keelman.spark.attach import SlotApi
from keelman.spark.copy_runs.reports import CopyRunReporter
from keelman.spark.dispatch import Dispatcher
from keelman.spark.link import LinkApi
from keelman.spark.link_trust import LinkListener, check_worker
from keelman.spark.masters.cluster_watch import ClusterWatch
from keelman.spark.masters.connect import connect_server, interpreter
from keelman.spark.masters.demand import Demand
from keelman.spark.masters.driver import driver
from keelman.spark.masters.executors import Executors, executor_python, properties, slot_variables
from keelman.spark.masters.jobs import Spark, SparkJobs
from keelman.spark.masters.master import unfit
from keelman.spark.masters.master_line import MasterLine
from keelman.spark.masters.pack import FOLDER, Pack
from keelman.spark.masters.resources import EXECUTOR_CORES, cores_of
from keelman.spark.masters.restarted_spark import RestartedSpark
from keelman.spark.masters.slot_home import SlotHome, SlotListener
from keelman.spark.reach import ShortageNote
from keelman.spark.settings import Settings
from keelman.spark.waits import settled
from keelman.workers.client_properties import read_client_properties
from keelman.workers.spark_master import Master, MasterKind

log = get_logger()

TICK_SECONDS = 0.2
SLOTS_END_SECONDS = 4.0
LINKS_END_SECONDS = 0.5
PRELOAD = (
    "keelman.connectors.slot_parts",
    "keelman.connectors.file.source",
    "keelman.connectors.file.sink",
    "keelman.connectors.kafka_sink",
    "keelman.connectors.mirror.source",
    "keelman.connectors.tools.verifiable",
    "keelman.connectors.tools.mock",
    "keelman.connectors.spark.sink",
    "keelman.connectors.spark.source",
    "keelman.engine.sink.ranges",
    "keelman.connect.avro.converter",
    "keelman.connect.json_schema.converter",
    "keelman.connect.protobuf.converter",
)


async def run(settings: Settings, stop: asyncio.Event, *, loop: str = LOOP, path: Sequence[str] = ()) -> None:
    """Runs the service until `stop` is set or Spark is lost again and again (raises Unavailable, SPARK_LOST).

    `loop` names the factory of task loops as module:name, `path` further folders that slots import from.
    """
    begun = time.monotonic()
    master = Master.of(settings.master)
    reports = read_client_properties("spark.reports_properties_file", settings.reports_properties_file)
    home = SlotHome.of(settings, master)
    pack = None if settings.pack is None else Pack.read(settings.pack)
    line = MasterLine.of(master)
    begin = starter(settings, master, line, pack=pack, path=path, stop=stop)
    links = LinkListener.of(settings)
    if links is None and settings.trust != MESH and not is_loopback(settings.host):
        legal = "a loopback address, or any address with link_tls_certificate or trust = mesh"
        raise InvalidArgument.of("spark.host", settings.host, legal)
    if settings.port and not port_is_free(settings.host, settings.port):
        raise port_taken("spark", settings.host, settings.port)
    folder = settings.folder / "spark"
    fresh_folder(folder)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Siblings())
        # A killed JVM leaves its files.
        demand = Demand(settings.standby_idle_seconds if settings.standby else None)
        spark = RestartedSpark(lambda: begin(fresh_folder(folder)), line, demand)
        stack.callback(spark.close)
        jobs = SparkJobs(spark, tasks, partial(slot_order, settings, home, loop), most=2 * settings.max_slots)
        stack.callback(jobs.close)
        watchers = Watchers()
        source = f"spark/{settings.node}"
        publisher = await stack.enter_async_context(
            ReportPublisher(settings.reports_bootstrap_servers, source, reports)
        )
        reporter = CopyRunReporter(publisher, source)
        dispatcher = Dispatcher(
            jobs,
            settings.limits(cores_of(settings, master, properties(settings.spark_properties))),
            settings.times,
            busy_bytes_per_second=settings.busy_bytes_per_second,
            changed=(watchers.changed, reporter.changed),
            unfit=partial(unfit, master, cluster="" if is_loopback(settings.host) else settings.cluster),
            look_at=jobs.look_at,
            end_of=partial(end_of, folder),
            shortage=lambda: spark.shortage,
        )
        tasks.start(spark.live(jobs.warm_up, dispatcher.pool.attached))
        await first_of(spark.up.wait(), stop.wait())
        if not spark.up.is_set():
            return
        health = await stack.enter_async_context(open_api(dispatcher, watchers, settings, spark, links))
        if home.listener is not None:
            await stack.enter_async_context(open_slot_listener(home.listener, dispatcher))
        jobs.warm_up()
        await health.ready()
        log.info("serving", host=settings.host, port=settings.port, seconds=round(time.monotonic() - begun, 2))
        note = ShortageNote(settings.reach_file, lambda: spark.shortage)
        stack.callback(note.forget)
        looks = (lambda: demand.note(dispatcher.users), note.look)
        await first_of(_tick(dispatcher, reporter, looks), stop.wait())
        await health.unready()
        await drain(dispatcher, reporter, settings.grace_seconds * 0.75)


def slot_order(settings: Settings, home: SlotHome, loop: str) -> SlotOrder:
    """Returns the common part of a slot's order; the pool adds name and token."""
    return SlotOrder(
        slot="",
        token="",
        home=home.address,
        beat_timeout_seconds=settings.slot_beat_timeout_seconds,
        loop=loop,
        use_plugin=USE_PLUGIN,
        log_json=settings.log_json,
        log_level=settings.log_level,
        ca=home.newest_ca(),
        server_name=home.server_name,
    )


def starter(
    settings: Settings,
    master: Master,
    line: MasterLine,
    *,
    pack: Pack | None,
    path: Sequence[str],
    stop: asyncio.Event,
) -> Callable[[Path], AbstractAsyncContextManager[Spark | None]]:
    """Returns the function that begins a life of Spark in an empty folder. Raises InvalidArgument for impossible
    settings."""
    if master.kind is MasterKind.CONNECT:
        archive = FOLDER if pack else ""
        script = interpreter(executor_python(settings), slot_variables(path, PRELOAD), archive)
        return lambda folder: connect_server(master, pack, script, folder=folder, stop=stop)
    executors = Executors.of(settings, master, pack, [*map(str, package_roots()), *path], PRELOAD)
    cluster = ClusterWatch.of(master, line, int(executors.configuration.get(EXECUTOR_CORES, "1")))
    return lambda folder: driver(
        master, executors, cluster, heap_mb=settings.driver_memory_mb, folder=folder, stop=stop
    )


@contextlib.asynccontextmanager
async def open_slot_listener(listener: SlotListener, dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Serves slots of other hosts, and nothing else: the APIs for workers and people stay on loopback."""
    if not port_is_free(listener.host, listener.port):
        what = f"spark.advertised_address: port {listener.port} on {listener.host} is taken by another process"
        raise Unavailable(f"{what}: stop it, or give an address with another one", reason="PORT_TAKEN")
    async with serve(
        RpcService.of(SlotApi(dispatcher)),
        host=listener.host,
        port=listener.port,
        tls=listener.tls,
        label="spark",
        grace_seconds=LINKS_END_SECONDS,
    ) as health:
        await health.ready()
        log.info("serving_slots", host=listener.host, port=listener.port, tls=listener.tls is not None)
        yield


@contextlib.asynccontextmanager
async def open_api(
    dispatcher: Dispatcher, watchers: Watchers, settings: Settings, spark: RestartedSpark, links: LinkListener | None
) -> AsyncIterator[Health]:
    """Serves all APIs on loopback and the Unix socket, or with `links` on the Unix socket, and links over TLS on the
    port. Yields the health switch."""
    async with AsyncExitStack() as stack:
        health = await stack.enter_async_context(
            serve(
                *services(dispatcher, watchers, settings, spark),
                host=settings.host,
                port=settings.port if settings.port and links is None else None,
                socket=settings.health_socket,
                trust=settings.trust,
                label="spark",
                grace_seconds=LINKS_END_SECONDS,
            )
        )
        if links is not None:
            api = link_api(dispatcher, settings, spark, check_worker)
            await stack.enter_async_context(open_link_listener(links, api))
        yield health


@contextlib.asynccontextmanager
async def open_link_listener(listener: LinkListener, links: LinkApi) -> AsyncIterator[None]:
    """Serves links of workers over TLS, and nothing else."""
    async with serve(
        RpcService.of(links),
        host=listener.host,
        port=listener.port,
        tls=listener.tls,
        label="spark",
        grace_seconds=LINKS_END_SECONDS,
    ) as health:
        await health.ready()
        log.info("serving_links", host=listener.host, port=listener.port)
        yield


def link_api(
    dispatcher: Dispatcher,
    settings: Settings,
    spark: RestartedSpark,
    admit: Callable[[Context, str], None] = lambda context, worker_cluster: None,
) -> LinkApi:
    """Returns the API for workers' links, those that `admit` does not refuse. Workers hear from `spark` why it runs
    nothing, and which cores it has."""
    return LinkApi(dispatcher, settings.lease_seconds, lambda: spark.problem, lambda: spark.cores, admit)


def services(dispatcher: Dispatcher, watchers: Watchers, settings: Settings, spark: RestartedSpark) -> list[RpcService]:
    """Returns the services of the port on loopback, or of the Unix socket."""
    links = link_api(dispatcher, settings, spark)
    return [RpcService.of(api) for api in (links, SlotApi(dispatcher), SparkCopyRunApi(dispatcher, watchers))]


async def drain(dispatcher: Dispatcher, reporter: CopyRunReporter, seconds: float) -> None:
    """Lets every copy run commit and end, then ends the slots."""
    dispatcher.drain()

    async def wait() -> None:
        if not await settled(lambda: not dispatcher.book.live(), seconds):
            log.warning("drain_cut", copy_runs=len(dispatcher.book.live()), seconds=seconds)
        dispatcher.end_all_slots("STOPPING")
        await settled(lambda: not dispatcher.pool.slots, SLOTS_END_SECONDS)

    await first_of(wait(), _tick(dispatcher, reporter))


async def _tick(dispatcher: Dispatcher, reporter: CopyRunReporter, looks: Sequence[Callable[[], None]] = ()) -> None:
    while True:
        dispatcher.tick()
        for look in looks:
            look()
        reporter.flush()
        await asyncio.sleep(TICK_SECONDS)


def package_roots() -> list[Path]:
    """Returns the folders that slots import keelman from."""
    return [Path(p).parent for p in keelman.__path__]


def fresh_folder(folder: Path) -> Path:
    """Returns an empty folder; removes the leftovers of an earlier life. Raises InvalidArgument when it cannot be
    had."""
    shutil.rmtree(folder, ignore_errors=True)
    writable("spark.work_folder", folder, private=True)
    return folder
