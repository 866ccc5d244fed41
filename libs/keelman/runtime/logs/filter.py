"""Picks the lines of a log, as `logging` writes them, that are about one connector."""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson

_CLUSTER = "worker_cluster"
# A line's begin in the console's form: a time, then the level.
_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT[0-9:.]+Z? \[")


class ConnectorLines:
    """Takes a log's lines in order; a trace after a line belongs to that line."""

    def __init__(self, connector: str, worker_cluster: str = "") -> None:
        """`worker_cluster` is the connector's, if given; lines that name no worker cluster count as its."""
        self._connector, self._cluster = connector, worker_cluster
        self._connectors, self._clusters = _forms("connector", connector), _forms(_CLUSTER, worker_cluster)
        self._mine = False

    def again(self) -> ConnectorLines:
        """Returns a new instance for the same connector, that has taken no line yet."""
        return ConnectorLines(self._connector, self._cluster)

    def kept(self, lines: Iterable[bytes]) -> bytes:
        """Returns the lines that are about the connector."""
        return b"".join(line for line in lines if self._is_mine(line))

    def _is_mine(self, line: bytes) -> bool:
        if line.startswith(b"{"):
            try:
                tree = orjson.loads(line)
            except orjson.JSONDecodeError:
                return self._mine
            self._mine = (
                isinstance(tree, dict)
                and tree.get("connector") == self._connector
                and (not self._cluster or tree.get(_CLUSTER, self._cluster) == self._cluster)
            )
        elif _BEGIN.match(line):
            fields = line.rstrip() + b" "
            anyones = not self._cluster or f" {_CLUSTER}=".encode() not in fields
            self._mine = _has(fields, self._connectors) and (anyones or _has(fields, self._clusters))
        return self._mine


def _forms(name: str, value: str) -> list[bytes]:
    # structlog's console quotes a value as Python does if it has unusual characters.
    return [f" {name}={form} ".encode() for form in (value, repr(value))]


def _has(fields: bytes, forms: Iterable[bytes]) -> bool:
    return any(form in fields for form in forms)
