"""Lists the tables of a database by JDBC, with a driver of a worker's jars. Runs in a process that ends afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connectors.java.errors import connect_error, translated
from keelman.connectors.java.jvm import java_class, jpype
from keelman.runtime.logs.logging import get_logger

LOGIN_SECONDS = 10
TABLE = "TABLE"
"""JDBC's type of a user's table: views and system tables have other types."""
log = get_logger()


def tables(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables that the user may see: {"name", "tables": [{"catalog", "schema", "name", "columns": [{"name",
    "type", "key"}]}]}, catalog and schema empty if the database has none.

    `request` has `url`, `user`, `password`, the patterns `catalog`, `schema` and `table`, which are empty for all, and
    `jars`: lists of paths that belong together. The virtual machine must run. Raises ConnectError with the database's
    error.
    """
    url = request["url"]
    loaders: list[Any] = []  # a driver whose loader is closed cannot load further classes
    try:
        with closing(_connection(request, loaders)) as connection, translated():
            facts = connection.getMetaData()
            texts = [_text(request[part]) for part in ("catalog", "schema", "table")]
            rows = list(_rows(facts.getTables(*texts, jpype().JArray(java_class("java.lang.String"))([TABLE]))))
            columns = _columns(facts.getColumns(*texts, None))
            return {"name": kind_of(url), "tables": [_table(facts, row, columns) for row in rows]}
    finally:
        for loader in loaders:
            loader.close()


def kind_of(url: str) -> str:
    """Returns the database product in a URL: `postgresql` of `jdbc:postgresql://host/name`."""
    parts = url.split(":", 2)
    return parts[1] if len(parts) > 2 and parts[1] else url


def _connection(request: Mapping[str, Any], loaders: list[Any]) -> Any:
    url = request["url"]
    java_class("java.sql.DriverManager").setLoginTimeout(LOGIN_SECONDS)
    about = java_class("java.util.Properties")()
    about.setProperty("user", request["user"])
    about.setProperty("password", request["password"])
    for jars in request["jars"]:
        for driver in _drivers(jars, loaders):
            with translated():
                connection = driver.connect(url, about)
            if connection is not None:
                return connection
    kind = ":".join(url.split(":", 2)[:2])
    raise ConnectError(f"no JDBC driver for {kind}: in the shared jars and the plugins of the workers")


def _drivers(jars: Sequence[str], loaders: list[Any]) -> Iterator[Any]:
    """Yields the JDBC drivers that these jars name as services, loaded apart from all other classes but Java's own."""
    urls = [java_class("java.io.File")(jar).toURI().toURL() for jar in jars if Path(jar).is_file()]
    own = java_class("java.lang.ClassLoader").getPlatformClassLoader()
    loader = java_class("java.net.URLClassLoader")(jpype().JArray(java_class("java.net.URL"))(urls), own)
    loaders.append(loader)
    java_class("java.lang.Thread").currentThread().setContextClassLoader(loader)
    drivers = java_class("java.util.ServiceLoader").load(java_class("java.sql.Driver"), loader).iterator()
    while True:
        try:
            if not drivers.hasNext():
                return
            yield drivers.next()
        except java_class("java.util.ServiceConfigurationError") as error:
            log.warning("jdbc_driver_broken", error=str(connect_error(error)))


def _rows(results: Any) -> Iterator[Any]:
    with closing(results):
        names = results.getMetaData()
        labels = [str(names.getColumnLabel(i)).upper() for i in range(1, names.getColumnCount() + 1)]
        while results.next():
            # by their numbers, in their order: some databases return a row's columns only once and in that order
            yield {label: _python(results.getString(i)) for i, label in enumerate(labels, 1)}


def _columns(results: Any) -> dict[tuple[str, ...], list[dict[str, str]]]:
    columns: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in _rows(results):
        columns.setdefault(_place(row), []).append(row)
    return columns


def _table(facts: Any, row: Mapping[str, str], columns: Mapping[tuple[str, ...], list[dict[str, str]]]) -> Any:
    place = _place(row)
    keys = {row["COLUMN_NAME"] for row in _rows(facts.getPrimaryKeys(*(_text(part) for part in place)))}
    mine = columns.get(place, [])
    with suppress(KeyError, ValueError):
        mine = sorted(mine, key=lambda row: int(row["ORDINAL_POSITION"]))
    shown = [{"name": row["COLUMN_NAME"], "type": row["TYPE_NAME"], "key": row["COLUMN_NAME"] in keys} for row in mine]
    return {"catalog": place[0], "schema": place[1], "name": place[2], "columns": shown}


def _place(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row.get("TABLE_CAT", ""), row.get("TABLE_SCHEM", ""), row["TABLE_NAME"]


def _text(text: str) -> Any:
    return text or None


def _python(text: Any) -> str:
    return "" if text is None else str(text)
