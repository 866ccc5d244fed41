"""Judges nodes: whether they report, their versions, and the free resources of their hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keelman.cli.doctor.finding import Finding
from keelman.cli.output.words import size
from keelman.rpc.enums import state_word
from keelman.rpc.times import from_timestamp

MIN_PYTHON = (3, 11)
MIN_JAVA = 17
MIN_OPEN_FILES = 4096
MIN_DISK_BYTES = 1 << 30
MIN_MEMORY_BYTES = 256 << 20
MAX_CLOCK_SECONDS = 5.0
"""The largest legal error of a clock: certificates, and times in logs and records, depend on it."""


def node_findings(nodes: Iterable[Any], version: str, clusters: Iterable[Any] = ()) -> Iterator[Finding]:
    """Yields the problems of nodes. `version` is this command's version of keelman; empty if unknown. `clusters` are
    the worker clusters, which may name tenants."""
    tenants = sorted({cluster.spec.tenant for cluster in clusters} - {""})
    for node in nodes:
        name, status, state = f"node/{node.name}", node.status, state_word(node.status)
        if state == "OFFLINE":
            reason = f": {status.message}" if status.message else ""
            yield Finding(
                "nodes", name, f"it is OFFLINE{reason}",
                "start its agent (`systemctl start keelman-agent`), or check that its host reaches the state "
                "service; if the host is gone for good: `keelman delete node {node.name}`",
            )  # fmt: skip
            continue
        if state != "ONLINE":
            continue
        if version and status.version and status.version != version:
            yield Finding(
                "versions", name, f"its agent runs keelman {status.version}, and this is {version}",
                "upgrade the older one: state and gateway first, then agents, one node after the other",
            )  # fmt: skip
        if tenants and not status.tenant_users:
            yield Finding(
                "tenants", name,
                f"it has one user for the connectors of all tenants ({', '.join(tenants)}): they can read each other's "
                "files, passwords and memory",
                "set `agent.tenant_users` of an agent that is root, e.g. 600000-604095, and restart it",
            )  # fmt: skip
        if status.HasField("figures"):
            yield from _figures(name, status)


def _figures(name: str, status: Any) -> Iterator[Finding]:
    figures = status.figures
    if figures.disk_free_bytes and figures.disk_free_bytes < MIN_DISK_BYTES:
        yield Finding(
            "disk", name, f"{size(figures.disk_free_bytes)} of disk are free",
            f"free some: below {size(MIN_DISK_BYTES)} brokers and logs soon cannot write; retention.ms of topics, "
            "`agent.log_*` settings, or a larger disk",
        )  # fmt: skip
    if figures.memory_available_bytes and figures.memory_available_bytes < MIN_MEMORY_BYTES:
        yield Finding(
            "memory", name, f"{size(figures.memory_available_bytes)} of memory are free",
            "move workers elsewhere (`keelman drain node`), or give clusters limits (--memory) or brokers less --heap",
        )  # fmt: skip
    if figures.HasField("open_files_limit") and figures.open_files_limit < MIN_OPEN_FILES:
        yield Finding(
            "limits", name, f"processes of its agent may have {figures.open_files_limit} files open",
            f"LimitNOFILE={MIN_OPEN_FILES * 16} in the agent's unit, or `ulimit -n`; then restart the agent",
        )  # fmt: skip
    if figures.python_version and _numbers(figures.python_version) < MIN_PYTHON:
        yield Finding(
            "versions", name, f"its Python is {figures.python_version}", "Python 3.11 or newer in its environment"
        )
    if figures.python_version and not figures.java_version:
        yield Finding(
            "versions", name, f"it has no Java of {MIN_JAVA} or newer",
            "install one, or set JAVA_HOME for the agent: brokers and Spark need it",
        )  # fmt: skip
    if figures.HasField("clock_ms") and status.HasField("heartbeat_time"):
        off = figures.clock_ms / 1000 - from_timestamp(status.heartbeat_time).timestamp()
        if abs(off) > MAX_CLOCK_SECONDS:
            yield Finding(
                "clocks", name,
                f"its clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the state service's",
                "let a time service set both clocks (chrony, systemd-timesyncd)",
            )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
