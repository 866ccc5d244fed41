"""Builds the API: the only wiring of this package."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp

from keelman.gateway.access.accounts import WHOLE
from keelman.gateway.access.callers import Callers
from keelman.gateway.access.replays import ReplayGuard
from keelman.gateway.access.signatures import ACCOUNT, REGION, Sent, Signatures, SignedCaller, claimed_region
from keelman.gateway.calls import Calls
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.connectors import ManagedConnectors
from keelman.gateway.managed_connect.plugins import CustomPlugins
from keelman.gateway.managed_connect.routes import PREFIX, Handler, ManagedConnectApi, Route
from keelman.gateway.managed_connect.tags import Tags
from keelman.gateway.managed_connect.worker_configurations import WorkerConfigurations
from keelman.gateway.settings import Settings
from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import Channel

SERVICE = "kafkaconnect"
CONFLICTS: frozenset[Route] = frozenset(
    {
        ("POST", "connectors"), ("PUT", "connectors/{arn}/pause"), ("PUT", "connectors/{arn}/resume"),
        ("POST", "custom-plugins"), ("POST", "worker-configurations"), ("POST", "tags/{arn}"),
    }
)  # fmt: skip
"""The operations that declare 409."""


def managed_connect_api(
    channel: Channel, settings: Settings, callers: Callers, on_refusal: Callable[[], Awaitable[None]]
) -> dict[str, ASGIApp]:
    """Returns the ASGI application by its path. `on_refusal` may delay the answer to a request whose signature is
    refused. Raises InvalidArgument for illegal settings."""
    control = Calls(channel)
    account = (lambda _: WHOLE) if settings.managed_connect_unsigned else callers.account
    plugins = CustomPlugins(control, account, most=settings.managed_connect_max_plugins)
    configurations = WorkerConfigurations(control, most=settings.managed_connect_max_worker_configurations)
    connectors = ManagedConnectors(
        control, plugins, configurations, account=account, roles=callers.roles, tls=callers.tls,
        most_workers=settings.managed_connect_max_workers,
    )  # fmt: skip
    tags = Tags({arns.CONNECTOR: connectors.kept, arns.PLUGIN: plugins, arns.WORKER_CONFIGURATION: configurations.kept})
    routes: dict[Route, Handler] = {
        ("POST", "connectors"): connectors.create,
        ("GET", "connectors"): connectors.page,
        ("GET", "connectors/{arn}"): connectors.describe,
        ("PUT", "connectors/{arn}"): connectors.update,
        ("DELETE", "connectors/{arn}"): connectors.delete,
        ("PUT", "connectors/{arn}/pause"): connectors.pause,
        ("PUT", "connectors/{arn}/resume"): connectors.resume,
        ("POST", "connectors/{arn}/restart"): connectors.restart,
        ("GET", "connectors/{arn}/operations"): connectors.list_operations,
        ("GET", "connectorOperations/{arn}"): connectors.describe_operation,
        ("POST", "custom-plugins"): plugins.create,
        ("GET", "custom-plugins"): plugins.page,
        ("GET", "custom-plugins/{arn}"): plugins.describe,
        ("DELETE", "custom-plugins/{arn}"): plugins.delete,
        ("POST", "worker-configurations"): configurations.create,
        ("GET", "worker-configurations"): configurations.page,
        ("GET", "worker-configurations/{arn}"): configurations.describe,
        ("DELETE", "worker-configurations/{arn}"): configurations.delete,
        ("GET", "tags/{arn}"): tags.all,
        ("POST", "tags/{arn}"): tags.add,
        ("DELETE", "tags/{arn}"): tags.remove,
    }
    unsigned = settings.managed_connect_unsigned
    if unsigned:
        api = ManagedConnectApi(
            routes, CONFLICTS, _unsigned(settings), check_head=lambda _: None, replays=None, on_refusal=on_refusal
        )
    else:
        signatures = Signatures(callers.keys, SERVICE, hosts=settings.managed_connect_hosts)
        api = ManagedConnectApi(
            routes,
            CONFLICTS,
            signatures.caller,
            check_head=signatures.check_head,
            replays=ReplayGuard(control),
            on_refusal=on_refusal,
        )
    return {PREFIX: api}


def _unsigned(settings: Settings) -> Callable[[Sent], SignedCaller]:
    """Maps every caller to one account. Raises InvalidArgument off loopback."""
    host, account = settings.http_host, settings.managed_connect_account
    if host != "localhost" and not _is_loopback(host):
        legal = "false where gateway.http_host is not on loopback: give gateway.managed_connect_access_file"
        raise InvalidArgument.of("gateway.managed_connect_unsigned", True, legal)
    if not ACCOUNT.fullmatch(account):
        raise InvalidArgument.of("gateway.managed_connect_account", account, "12 digits")
    if not REGION.fullmatch(settings.managed_connect_region):
        raise InvalidArgument.of("gateway.managed_connect_region", settings.managed_connect_region, "e.g. us-east-1")
    return lambda sent: SignedCaller(account, claimed_region(sent, SERVICE) or settings.managed_connect_region)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
