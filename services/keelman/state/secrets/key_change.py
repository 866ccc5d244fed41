"""Changes the key that seals secrets while state services run: they follow the file or command that it comes from.

The first one to see another key seals everything with it, in one transaction, and hands it on in the database, sealed
with the key before. The other state services of the database take it from there, and put it into their own files.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from keelman.model.errors import KeelmanError, NotFound
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.database import Database
from keelman.state.database.key_source import KeySource, read_keys, replace_keys, setting_of
from keelman.state.database.sealing import Sealer
from keelman.state.database.tables import SealingRow
from keelman.state.database.times import micros
from keelman.state.secrets.sealed_rows import reseal, wipe, write_proof

log = get_logger()
LOOK_SECONDS = 1.0
COMMAND_EVERY_SECONDS = 60.0
HANDED_ON_SECONDS = 600.0
"""How long the database has the new key sealed with the old one."""
FORGET_SECONDS = 60.0


@dataclass(slots=True)
class KeyChange:
    """`look` is called each LOOK_SECONDS, and `forget` each FORGET_SECONDS. The database's readers take over a key that
    another process changed."""

    database: Database
    source: KeySource
    command_seconds: float = COMMAND_EVERY_SECONDS
    clock: Callable[[], float] = time.monotonic
    _keys: Sequence[bytes] = ()
    _version: object = None
    """The version of the file read last."""
    _asked: float = 0.0
    """The time of the command's last run; 0 at first, as the start has just run it."""
    _begun: bytes = b""
    """The key to seal everything with; empty once that is done. It may be among the keys that open, and is no former
    one."""
    _logged: str = ""

    def __post_init__(self) -> None:
        self._asked = self.clock()

    async def look(self) -> None:
        """Follows the source of the key; if that cannot be read or used, this is logged once, and nothing changes."""
        try:
            await self._read()
        except (KeelmanError, OSError) as error:
            self._log("key_not_read", getattr(error, "message", str(error)))
            return
        sealer, first = self._sealer, self._keys[0] if self._keys else self._sealer.key
        if first == sealer.key:
            self._begun = b""
            return
        is_former, is_file = first in sealer.others and first != self._begun, isinstance(self.source, Path)
        if sealer.key in self._keys or (not is_former and not is_file):
            await self._change(sealer, first)
        elif is_former:
            self._catch_up(sealer)
        else:
            self._log("key_not_used", f"{self.source} has another key, and the present one is in no line behind it")

    @property
    def _sealer(self) -> Sealer:
        sealer = self.database.sealer
        assert sealer is not None
        return sealer

    async def _read(self) -> None:
        if isinstance(self.source, Path):
            changed = await asyncio.to_thread(_version_of, self.source)
            if changed == self._version:
                return
            self._keys, self._version = await asyncio.to_thread(read_keys, self.source), changed
        elif self.clock() - self._asked >= self.command_seconds:
            self._asked = self.clock()
            self._keys = await asyncio.to_thread(read_keys, self.source)
        else:
            return
        self._logged = ""

    async def _change(self, old: Sealer, key: bytes) -> None:
        """Seals everything with another key."""
        new = Sealer(key, self.source, (old.key, *(other for other in old.others if other != key)))
        new = replace(new, proof=new.made_proof())
        self._begun = key
        async with self.database.write() as turn:
            if self._sealer.key != old.key:  # another state service was quicker
                self._begun = b""
                return
            self.database.sealer = replace(old, others=(key, *old.others))  # readers may see either from the commit on
            connection = await turn.session.connection()
            rows = await reseal(connection, lambda spec, *place: new.seal(old.open(spec, *place), *place))
            handed_on = "" if self.database.is_sole else old.handed_on(key)
            await write_proof(connection, new, handed_on, micros(self.database.clock()))
        self.database.sealer, self._begun = new, b""
        log.info("key_changed", rows=rows, **{setting_of(self.source).rpartition(".")[2]: str(self.source)})
        async with self.database.between_writes() as engine:
            await wipe(engine)

    def _catch_up(self, sealer: Sealer) -> None:
        """Replaces a former key in the file by the present one."""
        if not isinstance(self.source, Path):
            self._log(
                "key_is_former", f"{self.source} prints a key that was used before: the next start needs the other"
            )
            return
        try:
            replace_keys(self.source, [sealer.key])
            log.info("key_file_replaced", file=str(self.source))
        except OSError as error:
            self._log(
                "key_file_not_replaced", f"{self.source}: {error.strerror}: put the new key there before a restart"
            )

    def _log(self, event: str, text: str) -> None:
        if text != self._logged:
            log.warning(event, setting=setting_of(self.source), error=text)
            self._logged = text

    async def forget(self) -> None:
        """Removes a handed-on key from the database after its time."""
        table: sa.Table = SealingRow.__table__  # type: ignore[attr-defined]
        before = micros(self.database.clock()) - int(HANDED_ON_SECONDS * 1_000_000)
        async with self.database.read() as session:
            row = (await (await session.connection()).execute(sa.select(table))).one_or_none()
        if row is not None and row.handed_on and row.change_time < before:
            statement = sa.update(table).where(table.c.proof == row.proof).values(handed_on="")
            async with self.database.aside() as connection:
                await connection.execute(statement)


def _version_of(file: Path) -> tuple[int, int]:
    """Returns a value that differs when the file does."""
    with contextlib.suppress(FileNotFoundError):
        status = file.stat()
        return status.st_mtime_ns, status.st_ino
    raise NotFound(f"{file} does not exist")
