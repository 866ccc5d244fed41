"""Makes the properties of a worker's listeners. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.workload import joined_address
from keelman.workers.properties.listeners import METRICS

LISTENERS, ADMIN_LISTENERS, METRICS_LISTENERS = "listeners", "admin.listeners", METRICS
OF_PORTS: Mapping[str, str] = {
    LISTENERS: "it follows from the worker's node, spec.port and spec.https",
    ADMIN_LISTENERS: "it follows from spec.admin_port",
    METRICS_LISTENERS: "it follows from spec.metrics_port",
}
"""The properties, and the reasons why users may not set them."""


def listeners(host: str, port: int, *, admin_port: int, metrics_port: int, https: bool) -> dict[str, str]:
    """Returns the properties of a worker on a host; a port of 0 means no listener."""
    scheme = "https" if https else "http"
    ports = {LISTENERS: port, ADMIN_LISTENERS: admin_port, METRICS_LISTENERS: metrics_port}
    return {key: f"{scheme}://{joined_address(host, number)}" for key, number in ports.items() if number}
