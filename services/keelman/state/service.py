"""The state service's whole life: builds the parts and runs them."""

from __future__ import annotations

import asyncio
import contextlib

from keelman.api.connect.v1 import broker_cluster_service_pb2_grpc as brokers_grpc
from keelman.api.connect.v1 import worker_cluster_service_pb2_grpc as workers_grpc
from keelman.api.connect.v1 import worker_service_pb2_grpc as worker_grpc
from keelman.api.copy.v1 import copy_run_service_pb2_grpc as runs_grpc
from keelman.api.node.v1 import node_service_pb2_grpc as nodes_grpc
from keelman.api.node.v1 import session_service_pb2_grpc as sessions_grpc
from keelman.api.node.v1 import workload_service_pb2_grpc as workloads_grpc
from keelman.model.errors import InvalidArgument
from keelman.rpc.server import Service, Tls, serve
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings
from keelman.state.api import BrokerClusterApi, NodeApi, WorkerApi, WorkerClusterApi, WorkloadApi
from keelman.state.database import POSTGRESQL, Database, open_database
from keelman.state.executor import Executor
from keelman.state.external import ExternalProbe
from keelman.state.hub import Hub
from keelman.state.in_sync import InSyncProbe
from keelman.state.planning.draft import Limits
from keelman.state.relay import Relay
from keelman.state.reports import Reader, Reports
from keelman.state.sessions import Sessions
from keelman.state.settings import Settings, port_range
from keelman.state.store import settle
from keelman.state.streams_api import CopyRunApi, SessionApi

log = get_logger()
PLAN_SECONDS = 2.0
PROBE_SECONDS = 10.0
IN_SYNC_SECONDS = 1.0


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop`; then ends the sessions and watches, and lets calls end."""
    limits = Limits(
        worker_ports=port_range("state.worker_ports", settings.worker_ports),
        broker_ports=port_range("state.broker_ports", settings.broker_ports),
        spark_ports=port_range("state.spark_ports", settings.spark_ports),
        spark_master=settings.spark_master,
        events_broker_cluster=settings.events_broker_cluster,
    )
    if settings.session_timeout_seconds <= settings.heartbeat_seconds:
        raise InvalidArgument.of(
            "state.session_timeout_seconds", settings.session_timeout_seconds,
            f"more than heartbeat_seconds ({settings.heartbeat_seconds:g})",
        )  # fmt: skip
    url = settings.database or str(settings.folder.database)
    commits, reports = Hub(), Reports(Hub())
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(url, settle, commits.wake))
        sessions = Sessions(
            database,
            commits,
            heartbeat_seconds=settings.heartbeat_seconds,
            timeout_seconds=settings.session_timeout_seconds,
        )
        copy_runs = CopyRunApi(database, reports, commits)
        server = serve(
            *_services(database, sessions, reports, copy_runs),
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
        planner = Reconciler("planner", Executor(database, limits).reconcile, PLAN_SECONDS)
        probe = Reconciler("external-probe", ExternalProbe(database).reconcile, PROBE_SECONDS)
        in_sync = Reconciler("in-sync", InSyncProbe(database).reconcile, IN_SYNC_SECONDS)
        judge = Reconciler("judge", sessions.judge, settings.heartbeat_seconds / 2)
        relay = Relay(database, commits, settings.events_broker_cluster, sole=not url.startswith(POSTGRESQL))
        reader = Reader(database, commits, reports, settings.events_broker_cluster)
        for name, part in (
            ("planner", planner.run()),
            ("external-probe", probe.run()),
            ("in-sync", in_sync.run()),
            ("judge", judge.run()),
            ("relay", relay.run()),
            ("reports", reader.run()),
            ("waker", _wake(commits, planner, probe, in_sync)),
        ):
            siblings.start(part, name=name)
        await health.ready()
        log.info("ready", host=settings.host, port=settings.port)
        await stop.wait()
        await health.unready()
        copy_runs.stopping.set()
        sessions.close()


async def _wake(commits: Hub, *reconcilers: Reconciler) -> None:
    with commits.subscribe() as changed:
        while True:
            await changed.wait()
            changed.clear()
            for reconciler in reconcilers:
                reconciler.wake()


def _services(database: Database, sessions: Sessions, reports: Reports, copy_runs: CopyRunApi) -> list[Service]:
    def of(noun: str, add: object, servicer: object, area: str) -> Service:
        return Service(f"keelman.api.{area}.v1.{noun}", add, servicer)  # type: ignore[arg-type]

    return [
        of("NodeService", nodes_grpc.add_NodeServiceServicer_to_server, NodeApi(database, sessions), "node"),
        of("WorkloadService", workloads_grpc.add_WorkloadServiceServicer_to_server,
           WorkloadApi(database, sessions), "node"),
        of("SessionService", sessions_grpc.add_SessionServiceServicer_to_server, SessionApi(sessions), "node"),
        of("BrokerClusterService", brokers_grpc.add_BrokerClusterServiceServicer_to_server,
           BrokerClusterApi(database), "connect"),
        of("WorkerClusterService", workers_grpc.add_WorkerClusterServiceServicer_to_server,
           WorkerClusterApi(database, reports), "connect"),
        of("WorkerService", worker_grpc.add_WorkerServiceServicer_to_server,
           WorkerApi(database, sessions, reports), "connect"),
        of("CopyRunService", runs_grpc.add_CopyRunServiceServicer_to_server, copy_runs, "copy"),
    ]  # fmt: skip
