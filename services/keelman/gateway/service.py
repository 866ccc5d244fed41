"""Builds the gateway and runs it: the only wiring."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from keelman.api.connect.v1 import (
    broker_cluster_service_pb2,
    connector_definition_service_pb2,
    dedicated_connector_service_pb2,
    document_service_pb2,
    operation_service_pb2,
    plugin_import_service_pb2,
    plugin_service_pb2,
    secret_service_pb2,
    topic_service_pb2,
    worker_cluster_service_pb2,
    worker_configuration_service_pb2,
    worker_service_pb2,
)
from keelman.api.connect.v1.connector_service_pb2 import DESCRIPTOR as CONNECTORS
from keelman.api.connect.v1.connector_service_pb2_grpc import add_ConnectorServiceServicer_to_server
from keelman.api.copy.v1 import copy_run_service_pb2
from keelman.api.event.v1 import watch_service_pb2
from keelman.api.node.v1 import node_service_pb2, plan_service_pb2, workload_service_pb2
from keelman.api.node.v1.agent_service_pb2 import DESCRIPTOR as AGENTS
from keelman.api.node.v1.agent_service_pb2_grpc import add_AgentServiceServicer_to_server
from keelman.gateway.api import Agents, ConnectorApi, LogApi
from keelman.gateway.listing import Listing, Written
from keelman.gateway.managed_connect.members import VERSION
from keelman.gateway.managed_connect.service import managed_connect_api
from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.service import ohara_api
from keelman.gateway.settings import Settings
from keelman.gateway.state import State
from keelman.gateway.validation import check
from keelman.gateway.web import application
from keelman.rpc.channels import channel, checked_peer, root_certificates
from keelman.rpc.forward import forwarded
from keelman.rpc.server import Service, Tls, serve
from keelman.runtime.http.server import serve_http
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.own_lines import OWN
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import Asking
from keelman.workers.rest.client import Rest
from keelman.workers.rest.connectors import Connectors

log = get_logger()

OWN_LOG_CHARACTERS = 4 << 20
"""So much of its own log a gateway keeps for those who ask for it."""

FORWARDED = (
    node_service_pb2.DESCRIPTOR.services_by_name["NodeService"],
    workload_service_pb2.DESCRIPTOR.services_by_name["WorkloadService"],
    plan_service_pb2.DESCRIPTOR.services_by_name["PlanService"],
    broker_cluster_service_pb2.DESCRIPTOR.services_by_name["BrokerClusterService"],
    worker_cluster_service_pb2.DESCRIPTOR.services_by_name["WorkerClusterService"],
    worker_configuration_service_pb2.DESCRIPTOR.services_by_name["WorkerConfigurationService"],
    worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"],
    plugin_service_pb2.DESCRIPTOR.services_by_name["PluginService"],
    plugin_import_service_pb2.DESCRIPTOR.services_by_name["PluginImportService"],
    secret_service_pb2.DESCRIPTOR.services_by_name["SecretService"],
    document_service_pb2.DESCRIPTOR.services_by_name["DocumentService"],
    operation_service_pb2.DESCRIPTOR.services_by_name["OperationService"],
    connector_definition_service_pb2.DESCRIPTOR.services_by_name["ConnectorDefinitionService"],
    dedicated_connector_service_pb2.DESCRIPTOR.services_by_name["DedicatedConnectorService"],
    topic_service_pb2.DESCRIPTOR.services_by_name["TopicService"],
    copy_run_service_pb2.DESCRIPTOR.services_by_name["CopyRunService"],
    watch_service_pb2.DESCRIPTOR.services_by_name["WatchService"],
)


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Serves until `stop` is set. Raises KeelmanError for settings that cannot be."""
    certificates = root_certificates("gateway.state_ca", settings.state_ca)
    checked_peer(
        "gateway.state_address", settings.state_address, ca="state_ca", certificates=certificates, trust=settings.trust
    )
    agents = Agents(root_certificates("gateway.agent_ca", settings.agent_ca), settings.trust)
    read_log = partial(agents.logs, seconds=settings.request_seconds)
    access = WorkerAccess.of("gateway", settings)
    OWN.keep(OWN_LOG_CHARACTERS)
    peer = f"the state service at {settings.state_address}"
    async with AsyncExitStack() as stack:
        unchanged = await stack.enter_async_context(
            channel(settings.state_address, root_certificates=certificates, translate=False)
        )
        asked = channel(settings.state_address, root_certificates=certificates, peer="the state service")
        state_channel = await stack.enter_async_context(asked)
        state = State(state_channel)
        workers = Rest(state.rest_urls, request_seconds=settings.request_seconds, access=access)
        rest = await stack.enter_async_context(workers)
        written = Written()
        asking = Asking(rest, access)
        ohara = ohara_api(Control(state_channel), asking, settings, read_log=read_log) if settings.ohara else {}
        managed = managed_connect_api(state_channel, settings) if settings.managed_connect else {}
        connectors = Connectors(asking, list_seconds=settings.list_seconds, on_write=written.note)
        services = [
            *(
                forwarded(s, unchanged, peer=peer, check=check, deadline_seconds=settings.request_seconds)
                for s in FORWARDED
            ),
            Service(
                CONNECTORS.services_by_name["ConnectorService"].full_name,
                add_ConnectorServiceServicer_to_server,
                ConnectorApi(connectors, Listing(state, connectors, written)),
            ),
            Service(
                AGENTS.services_by_name["AgentService"].full_name,
                add_AgentServiceServicer_to_server,
                LogApi(state, agents),
            ),
        ]
        apis = ohara | managed
        http = application(
            state, rest, max_body_bytes=settings.max_body_bytes, apis=apis, served=dict.fromkeys(managed, VERSION)
        )
        host, port, grace = settings.http_host, settings.http_port, settings.grace_seconds / 2
        await stack.enter_async_context(
            serve_http(http, host=host, port=port, label="gateway.http", grace_seconds=grace)
        )
        health = await stack.enter_async_context(
            serve(
                *services,
                host=settings.host,
                port=settings.port,
                socket=settings.health_socket,
                tls=Tls.of("gateway", settings.tls_certificate, settings.tls_key),
                trust=settings.trust,
                label="gateway",
            )
        )
        await health.ready()
        log.info(
            "serving",
            grpc=f"{settings.host}:{settings.port}",
            http=f"http://{settings.http_host}:{settings.http_port}",
            state=settings.state_address,
        )
        await stop.wait()
        await health.unready()
