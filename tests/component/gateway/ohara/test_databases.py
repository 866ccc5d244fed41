"""`/v0/inspect/rdb` on a real system: a PostgreSQL is asked by a worker with the driver of a shared jar."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from keelman.testing.eventually import eventually
from keelman.testing.servers.postgresql import BINARIES, USER, PostgresqlServer, running_postgresql
from support.cli.system import Keelman
from support.gateway.ohara.clients import DATA_CHECK, ILLEGAL_ARGUMENT, JsClient, client_of, key
from support.java.kit import needs_java
from support.java.published import POSTGRES

pytestmark = [
    pytest.mark.component,
    needs_java(),
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed"),
]
TABLES = """
CREATE TABLE public.orders (id bigint, line int, note varchar(9), at timestamp, PRIMARY KEY (line, id));
CREATE TABLE public.orders_2 (a int);
CREATE TABLE public.ordersx2 (b int);
CREATE SCHEMA other;
CREATE TABLE other.notes (text text PRIMARY KEY);
CREATE VIEW other.views AS SELECT 1;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with running_postgresql({}) as made:
        with psycopg.connect(made.url("postgres")) as connection:
            connection.execute(TABLES)
        yield made


@pytest.fixture(scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JsClient]:
    """A client of a system with the worker clusters `wk`, which has a driver and runs, and `stopped`."""
    keelman = Keelman(tmp_path_factory.mktemp("ohara"))
    try:
        await keelman.ok("up", "--detach", "--free-ports")
        async with client_of(keelman.system["http"]) as client:
            js = JsClient(client)
            await js.documented()
            (node,) = await js.list("nodes")
            (driver,) = (await POSTGRES.path()).rglob("postgresql-*.jar")
            sent = await client.post("/v0/files", files={"file": ("driver.jar", driver.read_bytes())})
            assert sent.status_code == 200, sent.text
            settings = {"nodeNames": [node["hostname"]], "brokerClusterKey": "default"}
            await js.create("workers", name="stopped", **settings)
            await js.create("workers", name="wk", sharedJarKeys=["driver.jar"], **settings)
            await js.act("workers", "wk", "start")
            await js.reaches("workers", "wk", "RUNNING")
            yield js
    finally:
        await keelman.cleaned()


async def test_tables_of_a_database_are_told_with_columns_and_keys(live: JsClient, server: PostgresqlServer) -> None:
    query: dict[str, Any] = {
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "user": USER, "password": "no secret", "workerClusterKey": "wk",
    }  # fmt: skip
    # The first question starts a Java virtual machine, for which a busy machine may take longer than an answer may.
    found = await eventually(lambda: live.ok("POST", "/inspect/rdb", query))
    place = {"catalogPattern": "postgres", "schemaPattern": "public"}
    tables = {one["name"]: one for one in found["tables"]}
    assert found["name"] == "postgresql"
    assert tables.keys() == {"orders", "orders_2", "ordersx2", "notes"}
    assert tables["orders"] == place | {
        "name": "orders",
        "columns": [
            {"name": "id", "dataType": "int8", "pk": True},
            {"name": "line", "dataType": "int4", "pk": True},
            {"name": "note", "dataType": "varchar", "pk": False},
            {"name": "at", "dataType": "timestamp", "pk": False},
        ],
    }
    assert [[column["name"] for column in tables[name]["columns"]] for name in ("orders_2", "ordersx2")] == [
        ["a"], ["b"],
    ]  # fmt: skip
    (note,) = (await live.ok("POST", "/inspect/rdb", query | {"schemaPattern": "oth%"}))["tables"]
    assert (note["schemaPattern"], note["name"]) == ("other", "notes")
    assert (await live.ok("POST", "/inspect/rdb", query | {"tableName": "none"}))["tables"] == []

    for changed, code, said in (
        ({"url": "jdbc:mysql://127.0.0.1/x"}, ILLEGAL_ARGUMENT, "no JDBC driver for jdbc:mysql"),
        ({"url": "jdbc:postgresql://127.0.0.1:1/x"}, ILLEGAL_ARGUMENT, "refused"),
        ({"url": f"{query['url']}none"}, ILLEGAL_ARGUMENT, 'database "postgresnone" does not exist'),
        ({"url": "postgresql://x"}, ILLEGAL_ARGUMENT, "a JDBC URL is needed"),
        ({"workerClusterKey": "stopped"}, DATA_CHECK, f"type:worker  {key('stopped')} MUST be running"),
        ({"workerClusterKey": "none"}, DATA_CHECK, f"type:worker {key('none')} does not exist "),
    ):
        refused = await live.refused("POST", "/inspect/rdb", query | changed)
        assert (refused.code, said in refused.message, "no secret" in refused.message) == (code, True, False), refused
