"""Builds a worker's parts and runs them: the only wiring."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from keelman.api.copy.v1.worker_link_service_pb2 import Bounds, WorkerGreeting
from keelman.connect.config.secret_keys import shown
from keelman.kafka.clients import wait_for_brokers
from keelman.kafka.feed import ReportPublisher
from keelman.kafka.groups.protocol import GroupClient
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings, first_of
from keelman.worker.asking.plugin_set import WorkerPluginSet
from keelman.worker.asking.third_party import ThirdParty
from keelman.worker.brokers_reach import BrokersReach
from keelman.worker.config.source import PropertySource
from keelman.worker.config.typed import read_properties
from keelman.worker.connector_files import begin_connectors, read_connectors
from keelman.worker.coordinators_reach import CoordinatorsReach
from keelman.worker.group.farewell import NoteKeeper
from keelman.worker.group.former_members import FormerMembers
from keelman.worker.group.herder import Herder
from keelman.worker.group.leader import GroupLeader
from keelman.worker.group.membership import Membership
from keelman.worker.metrics.connector_figures import MayUse
from keelman.worker.metrics.connector_reports import report_connectors
from keelman.worker.metrics.metrics import Metrics
from keelman.worker.metrics.plugin_reports import report_plugins
from keelman.worker.metrics.reports import report
from keelman.worker.offsets.sink_groups import only_sink_group
from keelman.worker.offsets.source_offsets import committed_rows
from keelman.worker.rest import loggers
from keelman.worker.rest.application import RestApi
from keelman.worker.rest.front.front import open_front, peer_tls
from keelman.worker.settings import Settings
from keelman.worker.short_flags import FLAG_OF
from keelman.worker.spark_drivers import Drivers
from keelman.worker.spark_reach import SparkReach
from keelman.worker.starting import open_farewell, open_group, open_health, open_spark, open_store, run_link, waiting_ms
from keelman.worker.storage.store import StoreCallbacks, WorkerStore
from keelman.worker.storage.topic_tracking import TopicTracking
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.owned_work import OwnedWork
from keelman.workers.client_properties import read_client_properties
from keelman.workers.properties.plugin_bounds import plugin_bounds
from keelman.workers.properties.plugin_folders import libraries_of
from keelman.workers.properties.typed import WorkerProperties

log = get_logger()


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs the worker process from start to end. Raises KeelmanError with one message for each impossible setting or
    state."""
    begun = asyncio.Event()
    await first_of(_work(settings, stop, begun), _stop_before(stop, begun))


async def _stop_before(stop: asyncio.Event, begun: asyncio.Event) -> None:
    """Returns when the worker has to stop before it has anything that it would have to give up in good order."""
    await stop.wait()
    if begun.is_set():
        await asyncio.Event().wait()


async def _work(settings: Settings, stop: asyncio.Event, begun: asyncio.Event) -> None:
    flags = FLAG_OF if settings.post_config else {}
    source = PropertySource.read(settings.properties_file, settings.properties, flags)
    properties = read_properties(source, standalone=settings.standalone)
    with source.named():
        await _live(settings, properties, stop, begun)


def _may_use(settings: Settings, properties: WorkerProperties) -> MayUse:
    """Returns the limits that its agent enforces, else those of its slots."""
    return MayUse(
        settings.limit_cpus or properties.cpus or 0.0, settings.limit_memory_bytes or properties.memory_bytes or 0
    )


def _follow(
    reach: BrokersReach, group: GroupClient, membership: Membership, store: WorkerStore, link: SparkLink
) -> None:
    """Has the brokers count as reached while the group or the config topic gets their answers, and coordinators and the
    Spark service watched."""
    coordinators = CoordinatorsReach(group, lambda: membership.heard_at, lambda: only_sink_group(store))
    spark = SparkReach(lambda: link.away)
    reach.follow(lambda: max(membership.heard_at, store.config_topic.heard_at), coordinators.problem, spark.problem)


async def _live(settings: Settings, properties: WorkerProperties, stop: asyncio.Event, begun: asyncio.Event) -> None:
    connectors = read_connectors(settings.connector_files)
    reports = read_client_properties("worker.reports_properties_file", settings.reports_properties_file)
    async with AsyncExitStack() as stack:
        ready = await stack.enter_async_context(open_health(settings.health_socket))
        api = RestApi(peer_tls(properties), standalone=properties.standalone, post_config=settings.post_config)
        stack.push_async_callback(api.close)
        entrance = await stack.enter_async_context(AsyncExitStack())
        front = await entrance.enter_async_context(open_front(api.app, properties, settings.admits))
        worker, url = front.worker, front.url
        spark = await stack.enter_async_context(open_spark(settings, properties, front, stop))
        log.info("worker_properties", properties=shown(properties.raw))
        wake, leave = asyncio.Event(), asyncio.Event()
        third_party = await stack.enter_async_context(_third_party(properties, wake))
        plugins = WorkerPluginSet(third_party, settings.plugins)
        reach = await stack.enter_async_context(
            BrokersReach(settings.brokers_file, properties.raw, client_id=worker).watched()
        )
        cluster_id = await wait_for_brokers(properties.raw, client_id=worker)
        group = await stack.enter_async_context(open_group(properties, worker))
        membership = Membership(
            group,
            group_id=properties.group_id,
            session_ms=min(properties.session_ms, properties.rebalance_ms),  # after that its work may be another's
            heartbeat_ms=properties.heartbeat_ms,
            wake=wake.set,
            on_member=_note_keeper(stack, settings, properties, url),
            former=FormerMembers(properties.session_ms / 1000, properties.rebalance_ms / 1000),
        )
        callbacks = StoreCallbacks(lambda: membership.healthy, wake.set, loggers.apply_level)
        store = await stack.enter_async_context(open_store(properties, worker, callbacks))
        third_party.begin_offsets(lambda config: committed_rows(store, config.get("name", ""), config))
        cluster, may_use = settings.worker_cluster or properties.group_id, _may_use(settings, properties)
        link = SparkLink(
            Drivers(spark.address),
            _greeting(settings, properties, cluster=cluster, worker=worker),
            may_renew=lambda: membership.lasting, away_seconds=settings.spark_away_seconds,
            changed=wake.set, absence=spark.problem, credentials=settings.link_credentials,
        )  # fmt: skip
        _follow(reach, group, membership, store, link)
        leader = GroupLeader(store, url=url, delay_ms=waiting_ms(settings, properties), wake=wake.set)
        tracking = TopicTracking(store)
        owned = OwnedWork(store, membership, link, on_topics=tracking.used, worker_cluster=cluster, worker=worker)
        stack.enter_context(owned.tasks.heap.watched())
        herder = Herder(store, membership, leader, owned, url=url, wake=wake, unfit=lambda: link.unfit)
        publisher = await stack.enter_async_context(
            ReportPublisher(settings.reports_bootstrap_servers, worker, reports)
        )
        async with Siblings() as siblings:
            siblings.start(store.run(), name="topics")
            siblings.start(membership.heartbeats(herder), name="heartbeats")
            siblings.start(run_link(link, spark.address, owned.tasks), name="spark link")
            siblings.start(_close_on(stop, entrance, leave, wake), name="stop")
            siblings.start(tracking.run(), name="topics in use")
            api.begin(herder, tracking, cluster_id, lambda: link.away)
            api.observability.begin(Metrics(herder, link, worker=worker, cluster=cluster, may_use=may_use))
            siblings.start(report(herder, link, publisher, worker_cluster=cluster, worker=worker), name="reports")
            connector_reports = report_connectors(store, herder.leads, publisher, worker_cluster=cluster, worker=worker)
            siblings.start(connector_reports, name="connector reports")
            siblings.start(report_plugins(plugins, publisher, worker_cluster=cluster, worker=worker), name="plugins")
            siblings.start(_ready(herder, plugins, ready), name="ready")
            if connectors:
                siblings.start(begin_connectors(connectors, herder, api.operations), name="connectors of files")
            begun.set()
            if settings.plugins:  # it takes no work with plugins of its cluster that do not load
                await first_of(plugins.read(), leave.wait())
            await herder.run(leave)
        log.info("worker_ended", worker=worker)


def _greeting(settings: Settings, properties: WorkerProperties, *, cluster: str, worker: str) -> WorkerGreeting:
    """Returns the worker's greeting to the Spark service: its identity, new at each start, and its slots' bounds."""
    return WorkerGreeting(
        worker_cluster=cluster,
        worker_id=worker,
        incarnation=uuid.uuid4().hex,
        bounds=Bounds(cpus=properties.cpus, memory_bytes=properties.memory_bytes),
        routes=settings.routes,
    )


def _third_party(properties: WorkerProperties, wake: asyncio.Event) -> AbstractAsyncContextManager[ThirdParty]:
    raw = properties.raw
    return ThirdParty.open(properties.plugin_path, wake.set, plugin_bounds(raw), libraries_of(raw))


def _note_keeper(stack: AsyncExitStack, settings: Settings, properties: WorkerProperties, url: str) -> NoteKeeper:
    """Keeps the note for the farewell of this worker when it dies."""
    return NoteKeeper(
        settings.member_file,
        url,
        group=properties.group_id,
        session_ms=properties.session_ms,
        rebalance_ms=properties.rebalance_ms,
        give=open_farewell(stack, settings, properties),
    )


async def _close_on(stop: asyncio.Event, entrance: AsyncExitStack, leave: asyncio.Event, wake: asyncio.Event) -> None:
    """Takes no more requests, answers those that it has, and only then leaves the group, as a worker of Connect's
    does."""
    await stop.wait()
    await entrance.aclose()
    leave.set()
    wake.set()


async def _ready(herder: Herder, plugins: WorkerPluginSet, ready: Callable[[], Awaitable[None]]) -> None:
    await herder.joined.wait()
    await plugins.read()
    await ready()
