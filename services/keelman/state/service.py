"""Builds the parts of the state service and runs them until its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from keelman.api.node.v1.session_service_pb2 import BucketKeys
from keelman.kafka.security.oauth import allow_urls
from keelman.model.errors import InvalidArgument
from keelman.rpc.actors import Actors
from keelman.rpc.server import Health, RpcService, check_drain, drain, serve
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings
from keelman.state.audit.api import AuditEventApi, AuditRecordApi
from keelman.state.audit.relay import AuditRelay
from keelman.state.audit.trail import AuditTrail
from keelman.state.autoscaling.loop import Autoscaler
from keelman.state.autoscaling.room import Room
from keelman.state.brokers.access import AccessKeeper
from keelman.state.brokers.external import ExternalProbe
from keelman.state.brokers.farewells import Farewells
from keelman.state.brokers.in_sync import InSyncProbe
from keelman.state.clusters.link_certificates import LinkCertificates
from keelman.state.clusters.settling import settle
from keelman.state.clusters.worker_urls import WorkerUrls
from keelman.state.dedicated.policy import NamedBrokers
from keelman.state.definitions.applying import CALL_SECONDS
from keelman.state.events.relay import Relay, relay_lease
from keelman.state.events.watch import Tail, WatchApi
from keelman.state.executor import Executor
from keelman.state.nouns import registry
from keelman.state.nouns.connector import ConnectorReportApi
from keelman.state.nouns.parts import NounParts
from keelman.state.operation_kinds import procedures
from keelman.state.operations.retention import Retention
from keelman.state.operations.runner import Runner
from keelman.state.planning.draft import Limits
from keelman.state.planning.idle import IdleSparks
from keelman.state.plugins.buckets import Buckets, opened_buckets
from keelman.state.plugins.opening import open_files
from keelman.state.replicas.fenced import FencedStore
from keelman.state.replicas.heard import Heard
from keelman.state.replicas.leader import LEADER, LeaderRole, Part
from keelman.state.replicas.lease import Lease
from keelman.state.reports.reader import ReportsReader
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.log_delivery import checked_buckets
from keelman.state.resources.snapshot import BROKER_CLUSTER, WORKER_CLUSTER
from keelman.state.resources.store import ResourceStore, subjects_of
from keelman.state.rotation.api import AuthorityApi
from keelman.state.secrets.key_change import FORGET_SECONDS, LOOK_SECONDS, KeyChange
from keelman.state.secrets.opening import open_store
from keelman.state.sessions.sessions import Sessions
from keelman.state.settings import Settings, port_range
from keelman.state.streams_api import CopyRunApi, SessionApi
from keelman.state.topics.look import TopicLook
from keelman.state.trust.api import services
from keelman.state.trust.members import Members
from keelman.state.trust.service import Trust
from keelman.state.trust.signatures import UsedSignatures
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Rest
from keelman.workers.rest.connectors import RestConnectors

if TYPE_CHECKING:
    from keelman.state.replicas.exchange import Exchange

log = get_logger()
PLAN_SECONDS = 2.0
PROBE_SECONDS = 10.0
IN_SYNC_SECONDS = 1.0
ACCESS_SECONDS = 5.0
FOLLOW_SECONDS = 1.0
SWEEP_SECONDS = 600.0


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop`; then ends the sessions and watches, and lets calls end."""
    check_drain("state", settings.drain_seconds, settings.grace_seconds)
    limits, buckets = _limits(settings), _buckets(settings)
    allow_urls(settings.oauth_urls)
    url = settings.database or str(settings.folder.database)
    commits, reports = Hub(), Reports(Hub())
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(url, registry.NOUNS, settle, key_file=settings.secrets_key))
        _freeze()
        store.listen(lambda changes: commits.wake(subjects_of(changes)))
        heard, lease = Heard(), Lease(store.database, LEADER)
        stack.push_async_callback(lease.release)
        sessions = _sessions(store, commits, heard, settings, limits.buckets)
        store.listen(sessions.changed)
        led = store if store.database.is_sole else FencedStore(store, lease)
        exchange = None if led is store else _exchange(url, store, heard, sessions, settings.heartbeat_seconds)
        plugins = await open_files(store, settings)
        stack.push_async_callback(plugins.close)
        store.follow((tail := Tail(store)).add)
        copy_runs, watch = CopyRunApi(store, reports, commits), WatchApi(store, commits, tail)
        topics, trail = TopicLook(store, commits), AuditTrail(store.database, settings.audit_events_kept)
        connectors = await stack.enter_async_context(_workers(store, reports, settings))
        trust = await Trust.of(settings, store)
        executor = _executor(led, replace(limits, link_tls=trust.authorities is not None), sessions, exchange, settings)
        store.listen(executor.changed)
        parts = NounParts(
            store, sessions, reports, plugins, executor, topics, limits.chosen_ports, commits, limits.buckets,
            trust.authorities, NamedBrokers(limits.policy_rules),
        )  # fmt: skip
        reported, of_audit = ConnectorReportApi(parts), (AuditEventApi(trail), AuditRecordApi(trail))
        apis = SessionApi(sessions, trust.callers), copy_runs, watch, reported, AuthorityApi(trust.members), *of_audit
        served = (*map(RpcService.of, apis), *services(trust.members, settings.address, UsedSignatures(store.database)))
        server = _server(settings, trust, *registry.all_services(parts), *served)
        siblings = await stack.enter_async_context(Siblings())
        health = await stack.enter_async_context(server)
        if exchange is None:
            await sessions.begin()
            heard.listens()
        else:
            executor.lead(False)
            siblings.start(exchange.run(executor.planned), name="exchange")
        by_kind = procedures(
            led, notes=topics, connectors=connectors, planned=executor, files=plugins, buckets=buckets,
            named_brokers=parts.named_brokers,
        )  # fmt: skip
        parts_of_leader = (
            ("judge", Reconciler("judge", lambda: sessions.judge(led), settings.heartbeat_seconds / 2).run),
            ("operations", Runner(led, commits, lease, by_kind, settings.operation_wait_seconds).run),
            ("autoscaler", Autoscaler(led, reports.recent_usage, Room(store, reports.connectors.of)).run),
            ("audit-relay", AuditRelay(store, commits, settings.events_broker_cluster, trail).run),
            ("plugin-sweeper", Reconciler("plugin-sweeper", plugins.sweep, SWEEP_SECONDS).run),
            *_reconcilers(led, commits, executor, trust.members, settings),
        )
        for name, part in (
            ("leader", LeaderRole(lease, (executor.lead, heard.begin)).run(parts_of_leader)),
            ("relay", Relay(store, commits, settings.events_broker_cluster, tail, relay_lease(store.database)).run()),
            ("reports", ReportsReader(store, commits, reports, settings.events_broker_cluster).run()),
            ("topic-look", topics.run()),
            *_following(store, settings, trust),
        ):
            siblings.start(part, name=name)
        await health.ready()
        siblings.start(health.follow(partial(_serves, exchange, stop), FOLLOW_SECONDS), name="health")
        log.info("ready", host=settings.host, port=settings.port)
        await stop.wait()
        await drain([health], settings.drain_seconds)
        for streams in (copy_runs, watch, reported):
            streams.stopping.set()
        sessions.close()


def _freeze() -> None:
    """Exempts stored resources from garbage collection: they stay, and with many nodes take a tenth of a second to
    scan."""
    gc.collect()
    gc.freeze()


def _following(
    store: ResourceStore, settings: Settings, trust: Trust
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Yields the parts that apply others' changes: rows, the key of secrets, this process's own certificate."""
    yield "follower", Reconciler("follower", store.catch_up, FOLLOW_SECONDS).run()
    change = KeyChange(store.database, settings.secrets_key)
    yield "secrets-key", Reconciler("secrets-key", change.look, LOOK_SECONDS).run()
    if not store.database.is_sole:
        yield "handed-on-key", Reconciler("handed-on-key", change.forget, FORGET_SECONDS).run()
    if trust.own is not None:
        yield "own-certificate", trust.own.keep()
        yield "authority", Reconciler("authority", trust.follow, FOLLOW_SECONDS).run()


def _exchange(url: str, store: ResourceStore, heard: Heard, sessions: Sessions, beat_seconds: float) -> Exchange:
    from keelman.state.replicas.exchange import Exchange  # noqa: PLC0415  (psycopg is a tenth of all imports)

    return Exchange(url, store, heard, beat_seconds, sessions.cut_off)


def _serves(exchange: Exchange | None, stop: asyncio.Event) -> bool:
    return not (stop.is_set() or (exchange is not None and exchange.is_cut_off))


def _server(settings: Settings, trust: Trust, *services: RpcService) -> contextlib.AbstractAsyncContextManager[Health]:
    return serve(
        *services,
        host=settings.host,
        port=settings.port,
        socket=settings.socket,
        tls=trust.tls,
        trust=settings.trust,
        label="state",
        authorize=trust.authorize,
        interceptors=[Actors()],
    )


def _limits(settings: Settings) -> Limits:
    if settings.session_timeout_seconds <= settings.heartbeat_seconds:
        raise InvalidArgument.of(
            "state.session_timeout_seconds", settings.session_timeout_seconds,
            f"more than heartbeat_seconds ({settings.heartbeat_seconds:g})",
        )  # fmt: skip
    return Limits(
        worker_ports=port_range("state.worker_ports", settings.worker_ports),
        broker_ports=port_range("state.broker_ports", settings.broker_ports),
        spark_ports=port_range("state.spark_ports", settings.spark_ports),
        chosen_ports=port_range("state.chosen_ports", settings.chosen_ports),
        spark_master=settings.spark_master,
        events_broker_cluster=settings.events_broker_cluster,
        buckets=checked_buckets("state.buckets", settings.buckets),
        buckets_region=settings.buckets_region,
        policy_rules=settings.policy_rules,
    )


def _executor(
    led: ResourceStore, limits: Limits, sessions: Sessions, exchange: Exchange | None, settings: Settings
) -> Executor:
    on_planned = None if exchange is None else exchange.planned
    idle = IdleSparks(settings.spark_idle_seconds)
    return Executor(led, limits, sessions.alive, on_planned, is_behind=sessions.is_behind, idle=idle)


def _buckets(settings: Settings) -> Buckets:
    return opened_buckets(
        settings.buckets,
        settings.folder.plugin_store,
        region=settings.buckets_region,
        access_key_id=settings.buckets_access_key_id,
        secret_access_key=settings.buckets_secret_access_key,
    )


def _sessions(store: ResourceStore, commits: Hub, heard: Heard, settings: Settings, buckets: str) -> Sessions:
    return Sessions(
        store,
        commits,
        heard,
        heartbeat_seconds=settings.heartbeat_seconds,
        timeout_seconds=settings.session_timeout_seconds,
        bucket_keys=_bucket_keys(settings, buckets),
    )


def _bucket_keys(settings: Settings, buckets: str) -> BucketKeys | None:
    """Returns the keys that agents get for the delivery of logs; None if there are none."""
    if not (settings.buckets_access_key_id and buckets.startswith("http")):
        return None
    keys = (settings.buckets_access_key_id, settings.buckets_secret_access_key)
    return BucketKeys(buckets=buckets, access_key_id=keys[0], secret_access_key=keys[1])


async def _wake(commits: Hub, reconciler: Reconciler, *subjects: str) -> None:
    with commits.subscribe(*subjects) as changed:
        while True:
            await changed.wait()
            changed.clear()
            reconciler.wake()


@contextlib.asynccontextmanager
async def _workers(store: ResourceStore, reports: Reports, settings: Settings) -> AsyncIterator[RestConnectors]:
    access, urls = WorkerAccess.of("state", settings), WorkerUrls(store, reports)
    async with Rest(urls.of, request_seconds=CALL_SECONDS, access=access, heeds_ids=urls.heeds_ids) as rest:
        yield RestConnectors(ClusterRequests(rest, access))


def _reconcilers(
    store: ResourceStore, commits: Hub, executor: Executor, members: Members | None, settings: Settings
) -> Iterator[Part]:
    """Yields the leader's parts that check the whole state by a timer and when it has changed."""
    planner = Reconciler("planner", executor.reconcile, PLAN_SECONDS)
    probe = Reconciler(
        "external-probe", ExternalProbe(store, NamedBrokers(settings.policy_rules)).reconcile, PROBE_SECONDS
    )
    in_sync = Reconciler("in-sync", InSyncProbe(store).reconcile, IN_SYNC_SECONDS)
    access = Reconciler("access", AccessKeeper(store, members).reconcile, ACCESS_SECONDS)
    links = Reconciler("link-certificates", LinkCertificates(store, members).reconcile, ACCESS_SECONDS)
    yield "farewells", Farewells(store).run
    retention = Retention(store, settings.operations_kept_seconds, settings.operations_kept)
    for reconciler, *subjects in (
        (planner,),
        (probe, BROKER_CLUSTER),
        (in_sync, BROKER_CLUSTER),
        (access, BROKER_CLUSTER, WORKER_CLUSTER),
        (links, WORKER_CLUSTER),
    ):
        yield reconciler.name, reconciler.run
        yield f"{reconciler.name}-waker", partial(_wake, commits, reconciler, *subjects)
    yield "operation-forgetter", Reconciler("operation-forgetter", retention.reconcile, SWEEP_SECONDS).run
