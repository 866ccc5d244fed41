"""The nodes in a configuration, and the other settings for access to a cluster."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

PORT, TLS_PORT = 11210, 11207
NOOP_SECONDS = 120.0
"""The official client's value."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A node for the first connection. `port` is None if none is set."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BucketAccess:
    """The addresses of a cluster's nodes, and the credentials there. Without a user the client's certificate identifies
    the client.

    `network` is `auto`, `default` or `external`. `agent` is the client's name for servers.
    """

    seeds: Sequence[Seed]
    bucket: str
    user: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None
    network: str = "auto"
    bootstrap_seconds: float = 30.0
    agent: str = "keelman"
    compression: str = "ENABLED"
    """ENABLED, DISABLED or FORCED."""
    noop_seconds: float = NOOP_SECONDS
    """The interval at which a server checks that the client lives. A connection that is silent for twice as long is
    ended."""


def seeds_of(texts: Sequence[str]) -> list[Seed]:
    """Returns the nodes of `host`, `host:port`, `[::1]:port`. Raises ValueError naming the first illegal text."""
    return [_seed(text.strip()) for text in texts if text.strip()]


def _seed(text: str) -> Seed:
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]/\s,;]+))(?::(\d{1,5}))?", text)
    if match is None or (match[3] and not 0 < int(match[3]) < 65536):
        raise ValueError(f"{text!r} is no node: write host, host:port or [IPv6]:port")
    return Seed(match[1] or match[2], int(match[3]) if match[3] else None)
