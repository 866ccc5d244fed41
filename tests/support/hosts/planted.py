"""Secrets that are planted on several hosts, and the places where they are found in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import psutil
import sqlalchemy as sa

from keelman.kafka.clients import low_level_client
from keelman.kafka.tables.reading import read_topic

Places = Mapping[str, Sequence[str]]
"""For each secret the places where a process needs it, as patterns of their names."""


def in_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """All files below a folder: their relative names and contents."""
    for file in root.rglob("*"):
        if file.is_file() and not file.is_symlink():
            with contextlib.suppress(FileNotFoundError):  # the file comes and goes
                yield str(file.relative_to(root)), file.read_bytes()


def in_tables(url: str) -> Iterator[tuple[str, bytes]]:
    """The contents of all tables of a PostgreSQL, uncompressed."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        tables = sa.MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            for name, table in tables.tables.items():
                rows = connection.execute(sa.select(table))
                yield (
                    f"table {name}",
                    b"\n".join(v if isinstance(v, bytes) else str(v).encode() for r in rows for v in r),
                )
    finally:
        engine.dispose()


def in_processes(root: Path) -> Iterator[tuple[str, bytes]]:
    """The command lines and the environments of all processes that were started below a folder, or name it."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            parts = {part: Path(f"/proc/{process.pid}/{part}").read_bytes() for part in ("cmdline", "environ")}
            if any(str(root).encode() in text for text in parts.values()):
                yield from ((f"{part} of process {process.pid}", text) for part, text in parts.items())


async def in_topics(client: Mapping[str, str], without: Sequence[str] = ()) -> list[tuple[str, bytes]]:
    """The contents of the topics, uncompressed."""
    async with low_level_client(client, client_id="planted", timeout_ms=10_000) as actual_low_level_client:
        names = sorted(set((await actual_low_level_client.fetch_all_metadata()).topics()) - set(without))
    held = []
    for name in names:
        rows = await read_topic(client, name, client_id="planted", seconds=300)
        held.append((f"topic {name}", b"\n".join((row.value or b"") + row.key for row in rows)))
    return held


class Search:
    """Looks for secrets in its inputs; `needed` lists the permitted places of each."""

    def __init__(self, secrets: Mapping[str, Sequence[str]], needed: Places) -> None:
        self._secrets = {name: [part.encode() for part in parts] for name, parts in secrets.items()}
        self._needed = needed
        self.looked = 0
        self.found: set[tuple[str, str]] = set()

    def look(self, place: str, data: bytes) -> None:
        """Notes the secrets in the data."""
        self.looked += 1
        self.found |= {(name, place) for name, parts in self._secrets.items() if any(part in data for part in parts)}

    @property
    def strays(self) -> set[tuple[str, str]]:
        """The secrets that are where no process needs them, with these places."""
        return {
            (name, place)
            for name, place in self.found
            if not any(fnmatch(place, pattern) for pattern in self._needed.get(name, ()))
        }
