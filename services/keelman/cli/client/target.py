"""Decides which gateway a command calls, and with which credentials.

The order is --gateway, --context, KEELMAN_GATEWAY, KEELMAN_CONTEXT, the system of --home, the context in use, the
default home's system, 127.0.0.1:7400.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from keelman.cli.client.contexts import NAME, Context, Contexts
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.system import running_system
from keelman.cli.exits import OK
from keelman.cli.options import ContextName, GatewayAddress, HomeFolder
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.channels import channel
from keelman.runtime.home import Home

DEFAULT = "127.0.0.1:7400"
REACH_SECONDS = 5.0
HTTP_PORT = 7480


@dataclass(frozen=True, slots=True)
class GatewayPlace:
    """A gateway (host:port), the source that named it, the URL of its HTTP API, and the context with the rest."""

    address: str
    source: str
    http: str
    context: Context

    @property
    def wants(self) -> str:
        """Advice for a user who cannot reach the gateway."""
        if self.context.gateway:
            return f"see `keelman context show` and give --gateway host:port for another one (from {self.source})"
        return f"start the system with `keelman up`, or give --gateway host:port (from {self.source})"


@dataclass(frozen=True, slots=True)
class GatewayTarget:
    """The gateway that --gateway, --context and --home name."""

    gateway: GatewayAddress = None
    context: ContextName = None
    home: HomeFolder = None

    @property
    def place(self) -> GatewayPlace:
        """The gateway to call. Raises InvalidArgument, and NotFound for an unknown context."""
        return place_of(self.gateway, self.context, self.home)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        """Yields a client of the gateway. Raises Unavailable if nothing answers for REACH_SECONDS.

        Waits also after a refused connection, since a gateway that is just starting refuses too.
        """
        place = self.place
        context = place.context
        async with channel(
            place.address, root_certificates=context.certificates, client=context.client, token=context.token
        ) as link:
            try:
                async with asyncio.timeout(REACH_SECONDS):
                    await link.channel_ready()
            except TimeoutError:
                raise Unavailable(
                    f"cannot reach the gateway at {place.address} (from {place.source}): {place.wants}"
                ) from None
            yield Gateway(link)

    def run(self, body: Callable[[Gateway], Awaitable[int | None]]) -> int:
        """Calls `body` with a client of the gateway; returns its exit code, OK if it returns none."""

        async def whole() -> int | None:
            async with self.open() as client:
                return await body(client)

        return asyncio.run(whole()) or OK


def home_of(path: Path | None) -> Home:
    """Returns the home of --home, else of KEELMAN_HOME, else the default home."""
    return Home(path.expanduser().absolute()) if path else Home.default()


def place_of(gateway: str | None, context: str | None, home: Path | None) -> GatewayPlace:
    """Returns the gateway to call, by the options and the environment. Raises InvalidArgument for an address that is
    not host:port and for --gateway together with --context, NotFound for an unknown context."""
    if gateway and context:
        raise InvalidArgument("--gateway: not together with --context, which names a gateway")
    environment, named = os.environ.get("KEELMAN_GATEWAY"), os.environ.get(NAME)
    system = running_system(home_of(home))
    if gateway or (environment and not context):
        source = "--gateway" if gateway else "KEELMAN_GATEWAY"
        address = checked_gateway(gateway or environment or "", source)
        is_system = system is not None and system.gateway == address
        return GatewayPlace(address, source, system.http if system and is_system else usual_http(address), Context(""))
    if context or named:
        source = "--context" if context else NAME
        return _in_context(context or named or "", source, Contexts.read())
    contexts = Contexts.read() if home is None else None
    if contexts is not None and contexts.current:
        return _in_context(contexts.current, "the context in use", contexts)
    if system is not None:
        return GatewayPlace(system.gateway, str(home_of(home).system), system.http, Context(""))
    return GatewayPlace(DEFAULT, "default", usual_http(DEFAULT), Context(""))


def _in_context(name: str, source: str, contexts: Contexts) -> GatewayPlace:
    context = contexts.named(name, source)
    http = context.http or usual_http(context.gateway, "https" if context.ca else "http")
    return GatewayPlace(context.gateway, f"context {name}", http, context)


def usual_http(address: str, scheme: str = "http") -> str:
    """Returns the default URL of the HTTP API of the gateway at an address."""
    return f"{scheme}://{address.rpartition(':')[0]}:{HTTP_PORT}"


def checked_gateway(address: str, field: str) -> str:
    """Returns the address. Raises InvalidArgument unless it is host:port."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidArgument.of(field, address, "host:port, e.g. 127.0.0.1:7400")
    return address
