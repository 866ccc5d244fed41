"""The table of numbered rows in a MariaDB, and the configuration of Debezium's connector that follows it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping

from support.java.debezium import JSON
from support.java.numbered_rows import CHANGES_AT_ONCE, TABLE, Change, RowReport, judge
from support.java.published import DEBEZIUM_MARIADB
from support.servers.mariadb import PASSWORD, USER, MariadbServer, StatementFailed

DATABASE = "public"
"""The same as PostgreSQL's schema, which names the topics."""
REST_SECONDS = 0.02


class MariadbRows:
    """As `NumberedRows`, for a server with this database alone."""

    def __init__(self, server: MariadbServer) -> None:
        self._server = server
        server.do(f"CREATE DATABASE {DATABASE}")
        row = "(id INT PRIMARY KEY, version INT NOT NULL, words TEXT NOT NULL)"
        self._do(f"CREATE TABLE {TABLE} {row}; CREATE TABLE gone (id INT PRIMARY KEY, version INT NOT NULL)")

    def add(self, count: int, first: int = 0) -> None:
        """Adds rows of version 0."""
        rows = f"SELECT seq, 0, CONCAT('row ', seq, ' of a table') FROM seq_{first}_to_{first + count - 1}"
        self._do(f"INSERT INTO {TABLE} {rows}")

    def remove(self, first: int, count: int) -> None:
        """Deletes rows."""
        which = f"FROM {TABLE} WHERE id >= {first} AND id < {first + count}"
        self._do(f"BEGIN; INSERT INTO gone SELECT id, version {which}; DELETE {which}; COMMIT")

    def versions(self, table: str = TABLE) -> dict[int, int]:
        """The present versions, by row."""
        return {int(row): int(version) for row, version in self._do(f"SELECT id, version FROM {table}")}

    def judged(self, seen: Iterable[Change], before: Mapping[int, int]) -> RowReport:
        """Reports the faults in the observed changes. `before` holds the versions when the connector was created."""
        return judge(seen, before, self.versions(), self.versions("gone"))

    @contextlib.contextmanager
    def changing(self, rows: int) -> Iterator[None]:
        """Changes one row after another during the block, also if the server is killed meanwhile."""
        ended = threading.Event()

        def work() -> None:
            first = 0
            while not ended.wait(REST_SECONDS):
                with contextlib.suppress(StatementFailed):
                    which = f"id >= {first % rows} AND id < {first % rows + CHANGES_AT_ONCE}"
                    self._do(f"UPDATE {TABLE} SET version = version + 1 WHERE {which}")
                    first += CHANGES_AT_ONCE

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(300)

    def _do(self, statement: str) -> list[list[str]]:
        return self._server.do(statement, DATABASE)


def mariadb_config(server: MariadbServer, bootstrap: str, name: str, **more: str) -> dict[str, str]:
    """Follows the table into the topic `<name>.public.numbered`, with its history of schemas in Kafka.

    Keys of `more` have `_` for `.`.
    """
    return {
        "connector.class": DEBEZIUM_MARIADB,
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.server.id": "77",
        "topic.prefix": name,
        "table.include.list": f"{DATABASE}.{TABLE}",
        "database.include.list": DATABASE,
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": f"{name}.history",
        "tombstones.on.delete": "false",
        "retriable.restart.connector.wait.ms": "1000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "key.converter": JSON,
        "value.converter": JSON,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
