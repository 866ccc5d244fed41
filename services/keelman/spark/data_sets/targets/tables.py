"""Tables by JDBC that take each write once: filled beside the table, then inserted in one transaction with its number.

The schema of the table has a table `keelman_writes` with a row for each writer: the number and ends of its last
write, and the name of the table that its present attempt fills. Each attempt first puts its own table's name there; the
transaction that inserts the rows requires that name, so an attempt that was given up can insert nothing any more.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.model.errors import Conflict, InvalidArgument
from keelman.spark.data_sets.targets.files import check_ends, ends_of

WRITES = "keelman_writes"
_ROW = "writer VARCHAR(32) NOT NULL PRIMARY KEY, version DECIMAL(18) NOT NULL, ends VARCHAR({size}), filled VARCHAR(64)"
ENDS_BYTES = 4_000


def write_table(session: Any, options: Mapping[str, str], job: WriteJob, frame: Any) -> None:
    """Appends the frame's rows to the table of the options once. Blocks.

    Raises FailedPrecondition when the table has a write of that number with other ends; Conflict when another
    attempt has taken this one's place; InvalidArgument for options without `dbtable`, or columns that the table does
    not have; and Spark's and the database's errors.
    """
    table = options.get("dbtable", "").strip()
    if not table:
        raise InvalidArgument.of("spark.option.dbtable", "", "the name of a table")
    schema = table.rpartition(".")[0]
    beside = f"{schema}." if schema else ""
    with Database.open(session, options) as database:
        filled = f"{beside}keelman_{uuid.uuid4().hex[:12]}"
        row = Row(database, f"{beside}{WRITES}", job)
        if row.is_written(table) or not row.take(filled):
            return
        if not database.has(table):
            frame.limit(0).write.format("jdbc").options(**options).mode("append").save()
        names = database.matching(table, frame.columns)
        database.make_like(filled, table)
        try:
            frame.write.format("jdbc").options(**{**options, "dbtable": filled}).mode("append").save()
            row.insert(table, filled, names)
        finally:
            with contextlib.suppress(Exception):
                database.run(f"DROP TABLE {filled}")


class Row:
    """The row of one writer."""

    def __init__(self, database: Database, table: str, job: WriteJob) -> None:
        self._database, self._table, self._job = database, table, job
        self._ends = ",".join(ends_of(job))
        if len(self._ends) > ENDS_BYTES:
            raise InvalidArgument.of(
                "topics", f"{len(job.ranges)} partitions", f"so many that a list of them has {ENDS_BYTES} characters"
            )
        if not database.has(table):
            database.run(f"CREATE TABLE {table} ({_ROW.format(size=ENDS_BYTES)})", may_exist=table)

    def is_written(self, name: str) -> bool:
        """Returns whether the table has the write. Raises FailedPrecondition when it has it with other ends."""
        query = f"SELECT version, ends FROM {self._table} WHERE writer = ?"
        rows = self._database.rows(query, self._job.writer)
        if not rows or int(float(rows[0][0])) < self._job.version:
            return False
        if int(float(rows[0][0])) == self._job.version:
            check_ends(name, self._job, rows[0][1].split(","))
        return True

    def take(self, filled: str) -> bool:
        """Names the table of this attempt, and deletes that of the attempt before. Returns False when the table has the
        write by now."""
        rows = self._database.rows(f"SELECT filled FROM {self._table} WHERE writer = ?", self._job.writer)
        if not rows:
            line = f"INSERT INTO {self._table} (writer, version, ends, filled) VALUES (?, 0, '', ?)"
            self._database.run(line, self._job.writer, filled)
            return True
        if rows[0][0]:
            with contextlib.suppress(Exception):
                self._database.run(f"DROP TABLE {rows[0][0]}")
        line = f"UPDATE {self._table} SET filled = ? WHERE writer = ? AND version < {self._job.version}"
        return self._database.run(line, filled, self._job.writer) == 1

    def insert(self, table: str, filled: str, names: Sequence[str]) -> None:
        """Inserts the rows and the number in one transaction. Raises Conflict when another attempt took its place."""
        columns = ", ".join(names)
        number = (
            f"UPDATE {self._table} SET version = {self._job.version}, ends = ?, filled = '' "
            f"WHERE writer = ? AND version < {self._job.version} AND filled = ?"
        )
        with self._database.transaction():
            if self._database.run(number, self._ends, self._job.writer, filled) != 1:
                raise Conflict(f"another attempt writes to {table} in place of this one", reason="SUPERSEDED")
            self._database.run(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {filled}")


class Database:
    """One connection, made as Spark makes those of its tables, by py4j."""

    def __init__(self, connection: Any, dialect: Any, url: str) -> None:
        self._connection, self._dialect, self._url = connection, dialect, url

    @classmethod
    @contextlib.contextmanager
    def open(cls, session: Any, options: Mapping[str, str]) -> Iterator[Database]:
        """Opens a connection, closed with the block. Raises the driver's errors."""
        jvm = session.sparkContext._jvm
        given = jvm.java.util.HashMap()
        for key, value in options.items():
            given.put(key, value)
        jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
        parsed = jdbc.JDBCOptions(jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given))
        url = options.get("url", "")
        dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url)
        connection = dialect.createConnectionFactory(parsed).apply(-1)
        try:
            yield cls(connection, dialect, url)
        finally:
            connection.close()

    def has(self, table: str) -> bool:
        """Returns whether there is a table."""
        try:
            self.rows(f"SELECT 1 FROM {table} WHERE 1 = 0")
        except Exception:
            return False
        return True

    def matching(self, table: str, columns: Sequence[str]) -> list[str]:
        """Returns the table's own names of columns, quoted. Raises InvalidArgument for one that it does not have."""
        statement = self._connection.prepareStatement(f"SELECT * FROM {table} WHERE 1 = 0")
        try:
            facts = statement.executeQuery().getMetaData()
            own = [str(facts.getColumnName(at)) for at in range(1, facts.getColumnCount() + 1)]
        finally:
            statement.close()
        by_name = {name.lower(): name for name in own} | {name: name for name in own}
        for column in columns:
            if column not in by_name and column.lower() not in by_name:
                raise InvalidArgument.of("value.schema", column, f"columns of {table}: {', '.join(own)}")
        found = [by_name.get(column) or by_name[column.lower()] for column in columns]
        return [str(self._dialect.quoteIdentifier(name)) for name in found]

    def make_like(self, name: str, table: str) -> None:
        """Creates an empty table with the columns of another."""
        if self._url.startswith("jdbc:sqlserver"):
            self.run(f"SELECT * INTO {name} FROM {table} WHERE 1 = 0")
        elif self._url.startswith(("jdbc:db2", "jdbc:derby")):
            self.run(f"CREATE TABLE {name} AS (SELECT * FROM {table}) WITH NO DATA")
        else:
            self.run(f"CREATE TABLE {name} AS SELECT * FROM {table} WHERE 1 = 0")

    def rows(self, query: str, *values: str) -> list[tuple[str, ...]]:
        """Returns the rows of a query as texts, "" for null."""
        statement = self._prepared(query, values)
        try:
            found = statement.executeQuery()
            width, rows = found.getMetaData().getColumnCount(), []
            while found.next():
                rows.append(tuple(str(found.getString(at) or "") for at in range(1, width + 1)))
            return rows
        finally:
            statement.close()

    def run(self, line: str, *values: str, may_exist: str = "") -> int:
        """Runs a statement and returns the number of rows that it changed. An error counts for nothing once there is a
        table `may_exist`."""
        statement = self._prepared(line, values)
        try:
            return int(statement.executeUpdate())
        except Exception:
            if may_exist and self.has(may_exist):
                return 0
            raise
        finally:
            statement.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits what the block runs, or nothing of it."""
        self._connection.setAutoCommit(False)
        try:
            yield
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            self._connection.setAutoCommit(True)

    def _prepared(self, line: str, values: Sequence[str]) -> Any:
        statement = self._connection.prepareStatement(line)
        for at, value in enumerate(values, 1):
            statement.setString(at, value)
        return statement
