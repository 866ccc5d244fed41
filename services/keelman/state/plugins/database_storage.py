"""Keeps files in the database, in chunks: a storage that needs no other service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO

import sqlalchemy as sa
from sqlmodel import col, select

from keelman.model.errors import NotFound
from keelman.state.database.database import Database
from keelman.state.database.failpoints import hit
from keelman.state.database.tables import PluginChunkRow
from keelman.state.database.times import micros, moment
from keelman.state.plugins.storage import CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class DatabaseStorage:
    """Each chunk is its own transaction, so that other writers wait for no more than that."""

    database: Database
    kind: str = "database"

    async def put(self, key: str, file: IO[bytes]) -> None:
        """See PluginStorage."""
        file.seek(0)
        number = 0
        while data := await asyncio.to_thread(file.read, CHUNK_BYTES):
            row = {"uid": key, "number": number, "time": micros(self.database.clock()), "data": data}
            async with self.database.write() as turn:
                await (await turn.session.connection()).execute(sa.insert(PluginChunkRow), [row])
            hit("plugin-chunked")
            number += 1

    async def read(self, key: str, offset: int = 0) -> AsyncIterator[bytes]:
        """See PluginStorage."""
        number, skipped = divmod(offset, CHUNK_BYTES)
        first = True
        while True:
            async with self.database.read() as session:
                chunks = select(PluginChunkRow.data).where(col(PluginChunkRow.uid) == key)
                data = (await session.exec(chunks.where(col(PluginChunkRow.number) == number))).one_or_none()
                if data is None and first and (await session.exec(chunks.limit(1))).one_or_none() is None:
                    raise NotFound(f"the database has no file {key}")
            if data is None:
                return
            yield data[skipped:]
            number, skipped, first = number + 1, 0, False

    async def delete(self, key: str) -> None:
        """See PluginStorage."""
        async with self.database.write() as turn:
            connection = await turn.session.connection()
            await connection.execute(sa.delete(PluginChunkRow).where(col(PluginChunkRow.uid) == key))

    async def stored(self) -> Mapping[str, datetime]:
        """See PluginStorage."""
        async with self.database.read() as session:
            query = select(PluginChunkRow.uid, sa.func.max(PluginChunkRow.time)).group_by(col(PluginChunkRow.uid))
            return {uid: moment(time) for uid, time in (await session.exec(query)).all()}
