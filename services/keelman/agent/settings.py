"""Every knob of the agent."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

from keelman.model.names import checked_name
from keelman.runtime.home import Home
from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman agent`: flags, KEELMAN_AGENT_*, TOML."""

    node: str = setting("", "Name of this node; empty means the host's name, lower-cased and made legal.")
    host: str = setting("127.0.0.1", "Address that the agent answers gRPC on.")
    port: int = setting(7420, "Port that the agent answers gRPC on.", minimum=1, maximum=65535)
    advertised_address: str = setting("", "host:port where others reach the agent; empty means host and port.")
    state_address: str = setting("127.0.0.1:7410", "host:port of the state service.")
    home: Path | None = setting(None, "Folder of this node's files; empty means KEELMAN_HOME, else ~/.keelman.")
    grace_seconds: float = setting(
        40.0, "How long a workload may take to end before it is killed, and the agent itself.", unit="s", minimum=0.1
    )
    unwell_seconds: float = setting(
        30.0,
        "A Spark service or worker that ran well and then does not answer its health check for so long is killed and "
        "started again; 0 means never.",
        unit="s",
        minimum=0,
    )

    @property
    def node_name(self) -> str:
        """The node's name. Raises InvalidArgument when one was given that is not legal."""
        return checked_name("agent.node", self.node) if self.node else legal_name(socket.gethostname())

    @property
    def address(self) -> str:
        """Where others reach the agent."""
        return self.advertised_address or f"{self.host}:{self.port}"

    @property
    def folder(self) -> Home:
        """The node's files."""
        return Home.of(self.home)


def legal_name(host: str) -> str:
    """A host's name as a legal node name: lower case, what is not legal becomes '-', at most 63 characters."""
    made = re.sub(r"[^a-z0-9._-]", "-", host.lower())[:63].strip("._-")
    return made or "node"
