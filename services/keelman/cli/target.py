"""Where the gateway is: --gateway, else KEELMAN_GATEWAY, else the home's system.json, else the default address."""

from __future__ import annotations

import os
from pathlib import Path

from keelman.cli.system import running_system
from keelman.model.errors import InvalidArgument
from keelman.runtime.home import Home

DEFAULT = "127.0.0.1:7400"


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
