"""Lists the properties of a managed broker that are derived from other settings and must not be given."""

from __future__ import annotations

from collections.abc import Mapping

SET_ELSEWHERE: Mapping[str, str] = {
    "process.roles": "controller",
    "node.id": "node_id",
    "broker.id": "node_id",
    "log.dir": "home",
    "log.dirs": "home",
    "metadata.log.dir": "home",
    "listeners": "host, port and controller_port",
    "advertised.listeners": "advertised",
    "controller.listener.names": "host, port and controller_port",
    "inter.broker.listener.name": "host, port and controller_port",
    "listener.security.protocol.map": "host, port and controller_port",
    "controller.quorum.voters": "voters",
    "controller.quorum.bootstrap.servers": "voters",
}
"""Each with the setting of the broker's process that replaces it."""
