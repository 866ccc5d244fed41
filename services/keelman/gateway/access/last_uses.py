"""Notes when callers of an access file were last admitted, in a file beside it: for `keelman token list`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson

from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings

log = get_logger()
WRITE_SECONDS = 60.0
"""The time between two writes."""
MAX_CALLERS = 10_000
TOKEN, USER = "token", "user"
"""Kinds of callers, which are before the names: two callers of different kinds may have one name."""


def last_uses_file(access_file: Path) -> Path:
    """Returns the file of an access file's last uses."""
    return access_file.with_name(f"{access_file.name}.used")


def read_last_uses(access_file: Path) -> dict[str, datetime]:
    """Returns the last use by kind and name, as in token/ci; empty if there is no legal file."""
    try:
        found = orjson.loads(last_uses_file(access_file).read_bytes())
        return {str(caller): datetime.fromisoformat(time) for caller, time in found.items()}
    except (OSError, orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
        return {}


class LastUses:
    """The last uses since the last write. Used in one loop."""

    def __init__(self, access_file: Path | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._access_file = access_file
        self._now = now
        self._fresh: dict[str, datetime] = {}
        self._problem = ""

    def note(self, kind: str, name: str) -> None:
        """Notes that a caller was admitted now."""
        self._fresh[f"{kind}/{name}"] = self._now()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Writes the file now and then within the block, and at its end."""
        async with Siblings() as siblings:
            task = siblings.start(self._keep(), name="last-uses")
            yield
            task.cancel()
        self.write()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            self.write()

    def write(self) -> None:
        """Adds the new uses to the file: other gateways may write it, too. A problem is logged once."""
        if self._access_file is None or not self._fresh:
            return
        known = read_last_uses(self._access_file)
        for caller, time in self._fresh.items():
            known[caller] = max(time, known.get(caller, time))
        newest = sorted(known.items(), key=lambda item: item[1])[-MAX_CALLERS:]
        content = orjson.dumps({caller: time.isoformat(timespec="seconds") for caller, time in sorted(newest)})
        try:
            write_file(last_uses_file(self._access_file), content)
        except OSError as error:
            if str(error) != self._problem:
                log.warning("last_uses_not_written", file=str(last_uses_file(self._access_file)), error=str(error))
            self._problem = str(error)
            return
        self._fresh.clear()
        self._problem = ""
