"""Opens the store of a database, with the key that seals its secrets."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from keelman.model.errors import InvalidArgument
from keelman.state.database.database import open_database
from keelman.state.database.key_source import KeySource
from keelman.state.resources.noun import Nouns
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.state.secrets.sealed_rows import open_sealer


@contextlib.asynccontextmanager
async def open_store(
    url: str, nouns: Nouns, settle: Callable[[Transaction], None], *, key_file: KeySource | None = None
) -> AsyncIterator[ResourceStore]:
    """Opens the store of a path or a postgresql:// URL, with all of it read. `nouns` and `settle` are those of
    `ResourceStore`. Secrets are sealed with the key of `key_file`; None: in secrets.key beside an SQLite file.

    Raises as `open_database` and `open_sealer`.
    """
    if key_file is None and "://" in url:
        raise InvalidArgument.of("state.key_file", "", "a file: a database without a file has none beside it")
    async with open_database(url) as database:
        database.sealer = await open_sealer(database.engine, key_file or Path(url).with_name("secrets.key"))
        store = ResourceStore(database, nouns, settle)
        await store.catch_up()
        yield store
