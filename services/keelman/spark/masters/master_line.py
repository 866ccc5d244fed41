"""Knows whether a master answers, and whether it has been away, by plain connections to its ports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from keelman.workers.spark_master import Master

CONNECT_SECONDS = 3.0
AGAIN_SECONDS = 0.5


class MasterLine:
    """Tries a master's addresses, of which one is enough. `returns` counts how often one was away and came back."""

    def __init__(self, addresses: Sequence[tuple[str, int]]) -> None:
        self._addresses = tuple(addresses)
        self.returns = 0
        self._away: set[tuple[str, int]] = set()

    @property
    def away(self) -> bool:
        """Whether an address that was held does not answer now."""
        return bool(self._away)

    @classmethod
    def of(cls, master: Master) -> MasterLine:
        """Returns the line to a master; to a local one there is none, and it always answers."""
        return cls(master.addresses)

    @property
    def is_needed(self) -> bool:
        """Whether Spark has a master of its own."""
        return bool(self._addresses)

    async def refusal(self) -> str:
        """Returns why no address answers, empty if one does. Takes CONNECT_SECONDS for each at most."""
        reasons = []
        for host, port in self._addresses:
            try:
                await _hang_up(await _connect(host, port))
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error or 'no answer'}")
            else:
                return ""
        return "; ".join(reasons)

    async def hold(self) -> None:
        """Keeps a connection to each address until cancelled: one that breaks, and cannot be made again at once, means
        that the master has ended."""
        async with asyncio.TaskGroup() as tasks:
            for host, port in self._addresses:
                tasks.create_task(self._hold(host, port))

    async def _hold(self, host: str, port: int) -> None:
        was_there = False
        while True:
            try:
                reader, writer = await _connect(host, port)
            except OSError:
                if was_there:
                    self._away.add((host, port))
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            self.returns += (host, port) in self._away
            self._away.discard((host, port))
            was_there = True
            try:
                with contextlib.suppress(OSError):
                    while await reader.read(1024):
                        pass
            finally:
                await _hang_up((reader, writer))


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(host, port)
    except TimeoutError:
        raise OSError(None, f"no answer for {CONNECT_SECONDS:g} s") from None


async def _hang_up(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    line[1].close()
    with contextlib.suppress(OSError):
        await line[1].wait_closed()
