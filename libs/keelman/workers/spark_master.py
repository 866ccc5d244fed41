"""Spark masters: the meaning of their URLs, and the consequences of their kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from keelman.model.errors import InvalidArgument
from keelman.rpc.server import is_loopback

LEGAL = (
    "local[n,1], spark://host:port (a standalone cluster) or sc://host:port (a Spark Connect server: also the way to "
    "Kubernetes and YARN)"
)


class MasterKind(Enum):
    """The kind of a master: where the driver and the executors are."""

    LOCAL = "local"
    """Executor and driver are one JVM of ours."""
    STANDALONE = "spark"
    """The driver is a JVM of ours, the executors are a standalone cluster's."""
    CONNECT = "sc"
    """Driver and executors are a Spark Connect server's; there is no JVM of ours."""


@dataclass(frozen=True, slots=True)
class Master:
    """A Spark master. `hosts` are the hosts in its name, none for a local one."""

    url: str
    kind: MasterKind
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, url: str, field: str = "spark.master") -> Master:
        """Reads the URL in a setting or field. Raises InvalidArgument for a master that is not served."""
        if url.startswith("local["):
            return cls(url, MasterKind.LOCAL)
        kind, _, rest = url.partition("://")
        hosts = _hosts(rest)
        if kind not in (MasterKind.STANDALONE.value, MasterKind.CONNECT.value) or not hosts:
            raise InvalidArgument.of(field, url, LEGAL)
        if not all(re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:/\[\]]+)(:\d{1,5})?", h) for h in hosts):
            raise InvalidArgument.of(field, url, LEGAL)
        return cls(url, MasterKind(kind), tuple(re.sub(r":\d+$", "", h).strip("[]") for h in hosts))

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each of its programs, none for a local one."""
        _, _, rest = self.url.partition("://")
        ports = [int(m[1]) if (m := re.search(r":(\d+)$", h)) else PORTS[self.kind] for h in _hosts(rest)]
        return tuple(zip(self.hosts, ports, strict=True)) if self.hosts else ()

    @property
    def remote(self) -> bool:
        """Whether slots may run on another host than this service's."""
        return self.kind is not MasterKind.LOCAL

    @property
    def shown(self) -> str:
        """The name for people: without possible secrets."""
        return self.url.partition("/;")[0]

    @property
    def near(self) -> bool:
        """Whether it is reached over loopback, so that this host's executors are all that it can have."""
        return all(is_loopback(host) for host in self.hosts)


PORTS = {MasterKind.STANDALONE: 7077, MasterKind.CONNECT: 15002}


def _hosts(rest: str) -> tuple[str, ...]:
    return tuple(h for h in rest.partition("/")[0].split(",") if h)
