"""Which gateway a command asks: --gateway, else KEELMAN_GATEWAY, else the home's system.json, else 127.0.0.1:7400."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import OK
from keelman.cli.machine.system import running_system
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.channels import channel
from keelman.runtime.home import Home

DEFAULT = "127.0.0.1:7400"
REACH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Target:
    """What --gateway and --home say."""

    gateway: str | None
    home: Path | None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        """A client of the gateway. Raises Unavailable when nothing answers there for REACH_SECONDS.

        Also where the connection is refused: one that is just being started, or started again, refuses too.
        """
        address, source = gateway_address(self.gateway, home_of(self.home))
        async with channel(address) as link:
            try:
                async with asyncio.timeout(REACH_SECONDS):
                    await link.channel_ready()
            except TimeoutError:
                raise Unavailable(
                    f"cannot reach the gateway at {address} (from {source}): start the system with `keelman up`, "
                    "or give --gateway host:port"
                ) from None
            yield Gateway(link)

    def run(self, body: Callable[[Gateway], Awaitable[int | None]]) -> int:
        """Calls `body` with a client of the gateway; returns its exit code, OK where it returns none."""

        async def whole() -> int | None:
            async with self.open() as client:
                return await body(client)

        return asyncio.run(whole()) or OK


def home_of(given: Path | None) -> Home:
    """The home named by --home, else by KEELMAN_HOME, else the usual one."""
    return Home(given.expanduser().absolute()) if given else Home.default()


def gateway_address(given: str | None, home: Home) -> tuple[str, str]:
    """The address as host:port and where it came from. Raises InvalidArgument for one that is not host:port."""
    if given:
        return _checked(given, "--gateway"), "--gateway"
    environment = os.environ.get("KEELMAN_GATEWAY")
    if environment:
        return _checked(environment, "KEELMAN_GATEWAY"), "KEELMAN_GATEWAY"
    system = running_system(home)
    if system is not None:
        return system.gateway, str(home.system)
    return DEFAULT, "default"


def _checked(address: str, field: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidArgument.of(field, address, "host:port, e.g. 127.0.0.1:7400")
    return address
