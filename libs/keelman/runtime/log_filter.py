"""Which lines of a log, as `logging` writes them, are about one connector."""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson

# A line's begin in the console's form: a time, then the level.
_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT[0-9:.]+Z? \[")


class ConnectorLines:
    """Takes a log's lines in order; a trace behind a line belongs to that line."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        # structlog's console quotes a value as Python does when there is anything odd in it.
        forms = {connector, repr(connector)}
        self._forms = tuple(f" connector={form}".encode() for form in forms)
        self._mine = False

    def kept(self, lines: Iterable[bytes]) -> bytes:
        """Those of them that are about the connector."""
        return b"".join(line for line in lines if self._is_mine(line))

    def _is_mine(self, line: bytes) -> bool:
        if line.startswith(b"{"):
            try:
                found = orjson.loads(line)
            except orjson.JSONDecodeError:
                return self._mine
            self._mine = isinstance(found, dict) and found.get("connector") == self._connector
        elif _BEGIN.match(line):
            bare = line.rstrip()
            self._mine = any(bare.endswith(form) or form + b" " in bare for form in self._forms)
        return self._mine
