"""The state service's whole life: builds the parts and runs them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from keelman.api.copy.v1 import copy_run_service_pb2_grpc as runs_grpc
from keelman.api.event.v1 import watch_service_pb2_grpc as watch_grpc
from keelman.api.node.v1 import session_service_pb2_grpc as sessions_grpc
from keelman.model.errors import InvalidArgument
from keelman.rpc.server import Service, Tls, serve
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings
from keelman.state.autoscaling.loop import Autoscaler
from keelman.state.brokers.external import ExternalProbe
from keelman.state.brokers.farewells import Farewells
from keelman.state.brokers.in_sync import InSyncProbe
from keelman.state.database import POSTGRESQL
from keelman.state.executor import Executor
from keelman.state.hub import Hub
from keelman.state.lease import Lease
from keelman.state.nouns import registry
from keelman.state.nouns.log_delivery import checked_buckets
from keelman.state.nouns.noun import Parts, service
from keelman.state.operations.apply_connector import CALL_SECONDS
from keelman.state.operations.kinds import Tools
from keelman.state.operations.registry import all_kinds
from keelman.state.operations.retention import Retention
from keelman.state.operations.runner import Runner
from keelman.state.planning.draft import Limits
from keelman.state.plugins.buckets import Buckets, opened_buckets
from keelman.state.plugins.opening import opened_files
from keelman.state.relay import Relay
from keelman.state.reports import Reader, Reports
from keelman.state.sessions import Sessions
from keelman.state.settings import Settings, port_range
from keelman.state.snapshot import BROKER_CLUSTER
from keelman.state.store import Store, open_store, subjects_of
from keelman.state.streams_api import CopyRunApi, SessionApi
from keelman.state.topics.look import TopicLook
from keelman.state.watch import Tail, WatchApi
from keelman.state.worker_urls import WorkerUrls
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import Asking
from keelman.workers.rest.client import Rest
from keelman.workers.rest.connectors import Connectors

log = get_logger()
PLAN_SECONDS = 2.0
PROBE_SECONDS = 10.0
IN_SYNC_SECONDS = 1.0
FOLLOW_SECONDS = 1.0
SWEEP_SECONDS = 600.0


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop`; then ends the sessions and watches, and lets calls end."""
    limits, buckets = _limits(settings), _buckets(settings)
    url = settings.database or str(settings.folder.database)
    commits, reports = Hub(), Reports(Hub())
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(url, key_file=settings.secrets_key))
        gc.collect()
        gc.freeze()  # what is stored stays: with many nodes it is a tenth of a second to look through
        store.listen(lambda changes: commits.wake(subjects_of(changes)))
        sessions = Sessions(
            store,
            commits,
            heartbeat_seconds=settings.heartbeat_seconds,
            timeout_seconds=settings.session_timeout_seconds,
        )
        sole = not url.startswith(POSTGRESQL)
        plugins = await opened_files(store, settings, sole=sole)
        stack.push_async_callback(plugins.close)
        store.follow((tail := Tail(store)).add)
        copy_runs, watch = CopyRunApi(store, reports, commits), WatchApi(store, commits, tail)
        topics = TopicLook(store, commits)
        connectors = await stack.enter_async_context(_workers(store, reports, settings))
        executor = Executor(store, limits, sessions.alive)
        parts = Parts(store, sessions, reports, plugins, executor, topics, limits.chosen_ports, limits.buckets)
        server = serve(
            *registry.all_services(parts),
            *_streams(sessions, copy_runs, watch),
            host=settings.host,
            port=settings.port,
            socket=settings.health_socket,
            tls=Tls.of("state", settings.tls_certificate, settings.tls_key),
            trust=settings.trust,
            label="state",
        )
        await sessions.begin()
        siblings = await stack.enter_async_context(Siblings())
        health = await stack.enter_async_context(server)
        planner = Reconciler("planner", executor.reconcile, PLAN_SECONDS)
        store.listen(executor.changed)
        probe = Reconciler("external-probe", ExternalProbe(store).reconcile, PROBE_SECONDS)
        in_sync = Reconciler("in-sync", InSyncProbe(store).reconcile, IN_SYNC_SECONDS)
        judge = Reconciler("judge", sessions.judge, settings.heartbeat_seconds / 2)
        relay = Relay(store, commits, settings.events_broker_cluster, tail, sole=sole)
        for name, part in (
            ("planner", planner.run()),
            ("farewells", Farewells(store).run()),
            ("external-probe", probe.run()),
            ("in-sync", in_sync.run()),
            ("judge", judge.run()),
            ("relay", relay.run()),
            ("follower", Reconciler("follower", store.catch_up, FOLLOW_SECONDS).run()),
            ("reports", Reader(store, commits, reports, settings.events_broker_cluster).run()),
            ("plugin-sweeper", Reconciler("plugin-sweeper", plugins.sweep, SWEEP_SECONDS).run()),
            *_operations(
                Tools(store, topics, connectors, executor, plugins, buckets), commits, reports, settings, sole=sole
            ),
            ("topic-look", topics.run()),
            ("planner-waker", _wake(commits, planner)),
            ("probe-waker", _wake(commits, probe, BROKER_CLUSTER)),
            ("in-sync-waker", _wake(commits, in_sync, BROKER_CLUSTER)),
        ):
            siblings.start(part, name=name)
        await health.ready()
        log.info("ready", host=settings.host, port=settings.port)
        await stop.wait()
        await health.unready()
        copy_runs.stopping.set()
        watch.stopping.set()
        sessions.close()


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
    )


def _buckets(settings: Settings) -> Buckets:
    return opened_buckets(
        settings.buckets,
        settings.folder.plugin_store,
        region=settings.buckets_region,
        access_key_id=settings.buckets_access_key_id,
        secret_access_key=settings.buckets_secret_access_key,
    )


async def _wake(commits: Hub, reconciler: Reconciler, *subjects: str) -> None:
    with commits.subscribe(*subjects) as changed:
        while True:
            await changed.wait()
            changed.clear()
            reconciler.wake()


@contextlib.asynccontextmanager
async def _workers(store: Store, reports: Reports, settings: Settings) -> AsyncIterator[Connectors]:
    access, urls = WorkerAccess.of("state", settings), WorkerUrls(store, reports)
    async with Rest(urls.of, request_seconds=CALL_SECONDS, access=access) as rest:
        yield Connectors(Asking(rest, access))


def _operations(
    tools: Tools, commits: Hub, reports: Reports, settings: Settings, *, sole: bool
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    store = tools.store
    lease = Lease(store.database, "operations", sole)
    runner = Runner(store, commits, lease, all_kinds(tools), wait_seconds=settings.operation_wait_seconds)
    yield "operations", runner.run()
    yield "autoscaler", Autoscaler(store, reports.recent_usage, Lease(store.database, "autoscaling", sole)).run()
    retention = Retention(store, settings.operations_kept_seconds, settings.operations_kept)
    yield "operation-forgetter", Reconciler("operation-forgetter", retention.reconcile, SWEEP_SECONDS).run()


def _streams(sessions: Sessions, copy_runs: CopyRunApi, watch: WatchApi) -> list[Service]:
    return [
        service("node", "SessionService", sessions_grpc.add_SessionServiceServicer_to_server, SessionApi(sessions)),
        service("copy", "CopyRunService", runs_grpc.add_CopyRunServiceServicer_to_server, copy_runs),
        service("event", "WatchService", watch_grpc.add_WatchServiceServicer_to_server, watch),
    ]
