"""Builds the gateway and runs it: the only wiring."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from keelman.gateway.access.service import Access
from keelman.gateway.api import ConnectorApi, LogApi
from keelman.gateway.connector_watch import ConnectorWatch
from keelman.gateway.listing import ConnectorListing, RecentWrites
from keelman.gateway.managed_connect.members import VERSION
from keelman.gateway.managed_connect.service import managed_connect_api
from keelman.gateway.ohara.service import ohara_api
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.settings import Settings
from keelman.gateway.state import State
from keelman.gateway.state_reach import StateReach
from keelman.gateway.trust import GatewayTrust
from keelman.gateway.validation import check
from keelman.gateway.web import application
from keelman.rpc.forward import forwarded
from keelman.rpc.generated import service_of
from keelman.rpc.server import Health, RpcService, check_drain, drain, serve
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.own_lines import OWN
from keelman.runtime.supervise import Siblings, first_of
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Rest
from keelman.workers.rest.connectors import RestConnectors

log = get_logger()
FOLLOW_SECONDS = 1.0
GARBAGE = (500, 2, 500)
"""When garbage is collected. With Python's own values a collection of all objects comes every few seconds while
thousands of calls wait, and takes tenths of a second."""
CALLS_AT_ONCE = 64
"""The most open calls of one connection of gRPC, streams included."""

OWN_LOG_CHARACTERS = 4 << 20
"""The size of its own log that a gateway keeps for callers."""

FORWARDED = {
    "access": ("authority", "join_token", "join"),
    "node": ("node", "workload", "plan"),
    "connect": (
        "broker_cluster", "worker_cluster", "spark_cluster", "worker_configuration", "worker", "plugin",
        "plugin_import", "secret", "document", "operation", "connector_definition", "dedicated_connector", "topic",
        "batch",
    ),
    "copy": ("copy_run",),
    "event": ("watch", "audit_event"),
}  # fmt: skip
"""The services that the state service answers, by area and noun."""


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Serves until `stop` is set. Raises KeelmanError for illegal settings."""
    gc.set_threshold(*GARBAGE)
    check_drain("gateway", settings.drain_seconds, settings.grace_seconds)
    trust = await GatewayTrust.of(settings)
    read_log = partial(trust.agents.logs, seconds=settings.request_seconds)
    access, of_workers = Access(settings, trust.tls), WorkerAccess.of("gateway", settings)
    OWN.keep(OWN_LOG_CHARACTERS)
    peer = f"the state service at {settings.state_address}"
    async with AsyncExitStack() as stack:
        unchanged = await stack.enter_async_context(trust.to_state(translate=False))
        state_channel = await stack.enter_async_context(trust.to_state(peer="the state service"))
        own = await stack.enter_async_context(trust.to_state(translate=False, apart=True))
        state, reach = State(state_channel), StateReach(own, peer=peer)
        workers = Rest(
            state.rest_urls, request_seconds=settings.request_seconds, access=of_workers, heeds_ids=state.heeds_ids
        )
        rest = await stack.enter_async_context(workers)
        written = RecentWrites()
        asking = ClusterRequests(rest, of_workers)
        ohara = ohara_api(OharaControl(state_channel), asking, settings, read_log=read_log) if settings.ohara else {}
        turn = access.turns.take
        managed = managed_connect_api(state_channel, settings, access.callers, turn) if settings.managed_connect else {}
        connectors = RestConnectors(asking, list_seconds=settings.list_seconds, on_write=written.note)
        listing = ConnectorListing(state, connectors, written)
        services = [
            *(
                forwarded(
                    service_of(area, noun), unchanged, peer=peer, check=check, deadline_seconds=settings.request_seconds
                )
                for area, nouns in FORWARDED.items()
                for noun in nouns
            ),
            RpcService.of(ConnectorApi(connectors, listing, ConnectorWatch(state, connectors))),
            RpcService.of(LogApi(state, trust.agents)),
        ]
        apis = ohara | managed
        http = application(
            state,
            rest,
            of_workers.logins,
            max_body_bytes=settings.max_body_bytes,
            apis=apis,
            served=dict.fromkeys(managed, VERSION),
            is_draining=stop.is_set,
            problem=lambda: reach.problem or access.callers.problem,
        )
        await stack.enter_async_context(access.running(state_channel))
        await stack.enter_async_context(access.serve_http(http))
        health = await stack.enter_async_context(
            serve(
                *services,
                host=settings.host,
                port=settings.port,
                socket=settings.health_socket,
                tls=trust.tls,
                trust=settings.trust,
                label="gateway",
                interceptors=access.interceptors(state_channel),
                calls_at_once=CALLS_AT_ONCE,
            )
        )
        certified = await stack.enter_async_context(access.serve_certified(services, state_channel))
        await health.ready()
        await _follow(reach, [health, *certified], stop, stack)
        log.info("serving", grpc=f"{settings.host}:{settings.port}", state=settings.state_address, **access.said)
        await first_of(stop.wait(), *([] if trust.member is None else [trust.member.run()]))
        await drain([health, *certified], settings.drain_seconds)


async def _follow(reach: StateReach, healths: Sequence[Health], stop: asyncio.Event, stack: AsyncExitStack) -> None:
    """Keeps health at NOT_SERVING while no state service can be reached, until the stack is closed."""
    siblings = await stack.enter_async_context(Siblings())
    siblings.start(reach.run(), name="state's reach")
    for health in healths:
        siblings.start(health.follow(lambda: not (stop.is_set() or reach.problem), FOLLOW_SECONDS), name="health")
