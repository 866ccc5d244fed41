"""Reads the tables of a database with the JDBC drivers that this worker's connectors have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from keelman.connectors.java import jvm
from keelman.model.errors import FailedPrecondition
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR
from keelman.worker.asking.third_party import jars_here
from keelman.worker.errors import RestError
from keelman.worker.previews.side_process import SideProcess, asking
from keelman.worker.storage.store import WorkerStore

READ_SECONDS = 20.0
log = get_logger()


class Databases:
    """Reads tables of databases; one per worker."""

    def __init__(self, store: WorkerStore, side_process: SideProcess) -> None:
        self._store = store
        self._side_process = side_process

    async def tables(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Returns the answer of `keelman.connectors.java.databases`; `fields` are its fields, of which some may be
        references.

        Raises RestError: 400 with the database's error, or where no jar has its driver; KeelmanError.
        """
        async with asking():
            resolved = await self._store.secrets.read(fields)
            self._store.judge.require_reachable({"url": resolved["url"]})
            REDACTOR.add({resolved["password"]: HIDDEN}, passing=True)
            try:
                await jvm.prepare(lambda line: log.info("database_tables", step=line))
            except FailedPrecondition as error:
                raise RestError(400, f"databases are queried by JDBC: {error.message}") from None
            jars = await asyncio.to_thread(jars_here)
            return await self._side_process.ask_of_none(
                "the tables of the database", "database_tables", seconds=READ_SECONDS, jars=jars, **resolved
            )
