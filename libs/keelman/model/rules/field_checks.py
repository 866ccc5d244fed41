"""Checks labels, ports, counts and limits that users choose, as far as each can be checked by itself."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterable, Mapping

from keelman.model.errors import InvalidArgument

LARGEST_PORT = 65535
MAX_WORKERS = 1000
MAX_CPUS = 100_000.0
MAX_ROUTES = 1000
_PART = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_PART}(\.{_PART})*")
_LABEL = re.compile(r"[A-Za-z0-9._/-]{1,63}")
LEGAL_LABEL = "1 to 63 letters, digits, '.', '_', '-' or '/'"


def check_labels(field: str, labels: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a label whose key or value is not legal; a value may be empty."""
    for key, value in labels.items():
        if not _LABEL.fullmatch(key):
            raise InvalidArgument.of(field, key, f"a key of {LEGAL_LABEL}")
        if value and not _LABEL.fullmatch(value):
            raise InvalidArgument.of(f"{field}.{key}", value, f"empty, or {LEGAL_LABEL}")


def check_port(field: str, port: int, *, zero: str = "") -> None:
    """Raises InvalidArgument for an illegal port; `zero` is the meaning of a 0, if that is legal."""
    if not (0 if zero else 1) <= port <= LARGEST_PORT:
        meaning = f"0 ({zero}) or " if zero else ""
        raise InvalidArgument.of(field, port, f"{meaning}1 to {LARGEST_PORT}")


def check_different_ports(ports: Iterable[tuple[str, int]]) -> None:
    """Raises InvalidArgument for a port that two of these fields name; a 0 is no port."""
    taken: dict[int, str] = {}
    for field, port in ports:
        if port and port in taken:
            raise InvalidArgument.of(field, port, f"another one than {taken[port]}")
        taken[port] = field


def check_limits(field: str, cpus: float, memory_bytes: int) -> None:
    """Raises InvalidArgument for processors or bytes of memory that cannot be a limit."""
    if not (math.isfinite(cpus) and 0 <= cpus <= MAX_CPUS):
        raise InvalidArgument.of(f"{field}.cpus", cpus, f"0 (none) to {MAX_CPUS:g}")
    if memory_bytes < 0:
        raise InvalidArgument.of(f"{field}.memory_bytes", memory_bytes, "0 (none) or more")


def check_count(field: str, count: int) -> None:
    """Raises InvalidArgument for a number of workers that no cluster can have."""
    if not 0 <= count <= MAX_WORKERS:
        raise InvalidArgument.of(field, count, f"1 to {MAX_WORKERS}")


def check_routes(field: str, routes: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a host name, or an address, that no route can have."""
    if len(routes) > MAX_ROUTES:
        raise InvalidArgument.of(field, f"{len(routes)} names", f"at most {MAX_ROUTES}")
    seen: set[str] = set()
    for name, address in routes.items():
        if not _HOST.fullmatch(name) or name.lower() == "localhost" or _is_address(name):
            raise InvalidArgument.of(field, name, "the name of a host, other than localhost, e.g. db.example")
        if name.lower() in seen:
            raise InvalidArgument.of(field, name, "each name once: a capital letter makes no other name")
        seen.add(name.lower())
        if not _is_address(address):
            raise InvalidArgument.of(f"{field}.{name}", address, "an IPv4 or IPv6 address, e.g. 10.0.0.7")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
