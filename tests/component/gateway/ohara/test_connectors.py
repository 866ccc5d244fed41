"""Connectors on a real system: a broker, a worker, and files that are copied in and out of Kafka.

And `/v0/inspect/rdb` there: a worker queries a PostgreSQL with the driver of a shared jar.
"""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from support.cli.system import FILE, Keelman
from support.eventually import eventually
from support.gateway.ohara.clients import (
    BAD_VALUE,
    DATA_CHECK,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    JsClient,
    Json,
    client_of,
    key,
)
from support.java.kit import needs_java
from support.java.published import POSTGRES
from support.plugins import jar_files
from support.servers.postgresql import BINARIES, USER, PostgresqlServer, running_postgresql

pytestmark = pytest.mark.component
WORKER = {"group": "default", "name": "wk"}
TABLES = """
CREATE TABLE public.orders (id bigint, line int, note varchar(9), at timestamp, PRIMARY KEY (line, id));
CREATE TABLE public.orders_2 (a int);
CREATE TABLE public.ordersx2 (b int);
CREATE SCHEMA other;
CREATE TABLE other.notes (text text PRIMARY KEY);
CREATE VIEW other.views AS SELECT 1;
"""


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keelman]:
    """State, gateway, agent, and a broker cluster `default`."""
    keelman = Keelman(tmp_path_factory.mktemp("ohara"))
    try:
        await keelman.ok("up", "--detach", "--free-ports")
        yield keelman
    finally:
        await keelman.cleaned()


@pytest.fixture(scope="module")
async def live(system: Keelman) -> AsyncIterator[JsClient]:
    """A client of the system, with a worker cluster `wk` and a topic `t` that run."""
    async with client_of(system.system["http"]) as client:
        js = JsClient(client)
        await js.documented()
        (node,) = await js.list("nodes")
        await js.create("workers", name="wk", nodeNames=[node["hostname"]], brokerClusterKey="default")
        await js.act("workers", "wk", "start")
        await js.create("topics", name="t", brokerClusterKey="default")
        await js.act("topics", "t", "start")
        await js.reaches("topics", "t", "RUNNING")
        await js.reaches("workers", "wk", "RUNNING")
        yield js


def source(name: str, file: Path, **more: Json) -> Json:
    """The settings of a connector that reads a file."""
    settings = {"connector.class": f"{FILE}SourceConnector", "workerClusterKey": "wk", "topicKeys": ["t"]}
    return {"name": name, **settings, "file": str(file), **more}


def sink(name: str, file: Path, **more: Json) -> Json:
    """The settings of a connector that writes a file."""
    return source(name, file, **more) | {"connector.class": f"{FILE}SinkConnector"}


async def test_a_source_copies_is_paused_resumed_and_stopped(live: JsClient, tmp_path: Path) -> None:
    (lines := tmp_path / "lines").write_text("a\nb\n")
    fields = await live.create("connectors", **source("src", lines, password="p4ss", tags={"a": 1}))
    assert (fields["topics"], fields["connectorKey"]) == (["default-t"], {"group": "default", "name": "src"})
    assert (fields["tasks.max"], fields["columns"], fields["check.rule"], fields["password"]) == (1, [], "NONE", "p4ss")
    assert (fields["tasksStatus"], fields["aliveNodes"], fields["nodeMetrics"]) == ([], [], {})
    assert "state" not in fields
    assert (
        await live.refused("PUT", "/connectors/src/pause")
    ).message == f"type:connector  {key('src')} MUST be running"
    await live.act("connectors", "src", "start")
    await live.act("connectors", "src", "start")
    running = await live.reaches("connectors", "src", "RUNNING")
    (node,) = (await live.get("workers", "wk"))["aliveNodes"]
    assert running["aliveNodes"] == [node]
    assert [(entry["coordinator"], entry["state"]) for entry in running["tasksStatus"]] == [
        (False, "RUNNING"),
        (True, "RUNNING"),
    ]
    assert (running["kind"], running["batch.size"]) == ("source", 2000)

    async def copied() -> bool:
        answer = await live.ok("POST", "/inspect/topics/t")
        return [message["value"] for message in answer["messages"]] == ["b", "a"]

    await eventually(copied, what="both lines are in the topic")
    for method in ("PUT", "DELETE"):
        refused = await live.refused(method, "/connectors/src", {} if method == "PUT" else None)
        assert (refused.code, refused.message) == (DATA_CHECK, f"type:connector  {key('src')} MUST be stopped")
    used = await live.refused("PUT", "/topics/t/stop")
    assert (used.code, used.message) == (
        ILLEGAL_ARGUMENT,
        f"topic:{key('t')} is used by running connectors:{key('src')}",
    )
    await live.act("connectors", "src", "pause")
    await live.reaches("connectors", "src", "PAUSED")
    await live.act("connectors", "src", "resume")
    await live.reaches("connectors", "src", "RUNNING")
    await live.act("connectors", "src", "stop")
    (listed,) = await live.list("connectors", name="src")
    assert listed["password"] == "[hidden]"
    changed = await live.update("connectors", "src", **{"tasks.max": 2, "password": listed["password"]})
    assert (changed["tasks.max"], changed["password"], changed["tags"]) == (2, "p4ss", {"a": 1})
    assert "state" not in changed
    await live.delete("connectors", "src")
    await live.delete("connectors", "src")
    assert (await live.refused("GET", "/connectors/src")).code == NO_SUCH


async def test_what_goes_wrong_is_told(live: JsClient, tmp_path: Path) -> None:
    await live.create("connectors", **sink("bad", tmp_path / "no" / "folder"))
    await live.act("connectors", "bad", "start")
    failed = await live.reaches("connectors", "bad", "FAILED")
    assert "Couldn't find or create file" in failed["error"]
    assert failed["tasksStatus"][0]["error"] == failed["error"]
    await live.act("connectors", "bad", "stop")
    await live.delete("connectors", "bad")
    await live.create("connectors", **source("lost", tmp_path) | {"connector.class": "com.acme.None"})
    await live.act("connectors", "lost", "start")

    async def refused() -> bool:
        return "com.acme.None" in (await live.get("connectors", "lost")).get("error", "")

    await eventually(refused, what="the class is not found")
    assert "state" not in await live.get("connectors", "lost")
    await live.delete("connectors", "lost")


async def test_what_cannot_be_is_refused(live: JsClient, tmp_path: Path) -> None:
    source_config = source("c", tmp_path / "f")
    lost = await live.refused("POST", "/connectors", source_config | {"workerClusterKey": "nowk"})
    assert (lost.code, lost.message) == (DATA_CHECK, f"type:worker {key('nowk')} does not exist ")
    topicless = await live.refused("POST", "/connectors", source_config | {"topicKeys": ["no"]})
    assert topicless.message == f"type:topic {key('no')} does not exist "
    column = {"order": 1, "name": "a", "newName": "b", "dataType": "INT"}
    twice = await live.refused("POST", "/connectors", source_config | {"columns": [column, column]})
    assert (twice.code, twice.message) == (BAD_VALUE, "duplicate order:List(1, 1)")
    await live.create("connectors", **source_config | {"topicKeys": []})
    assert (await live.refused("POST", "/connectors", source_config)).code == ILLEGAL_STATE
    assert (await live.refused("PUT", "/connectors/c/start")).message == "topicKeys can't be empty"
    await live.create("topics", name="idle", brokerClusterKey="default")
    await live.update("connectors", "c", topicKeys=["idle"])
    assert (await live.refused("PUT", "/connectors/c/start")).message == f"type:topic  {key('idle')} MUST be running"
    in_use = await live.refused("DELETE", "/topics/idle")
    assert in_use.message == f"topic:{key('idle')} is used by running connectors:{key('c')}"
    await live.delete("connectors", "c")
    await live.delete("topics", "idle")


async def test_a_topic_of_other_brokers_is_refused(live: JsClient, system: Keelman, tmp_path: Path) -> None:
    (own,) = await live.list("brokers")
    bootstrap = f"{own['nodeNames'][0]}:{own['clientPort']}"
    await system.ok("create", "brokercluster", "other", "--bootstrap-servers", bootstrap)
    await live.reaches("brokers", "other", "RUNNING")
    await live.create("topics", name="far", brokerClusterKey="other")
    await live.act("topics", "far", "start")
    await live.reaches("topics", "far", "RUNNING")
    await live.create("connectors", **source("far", tmp_path / "f") | {"topicKeys": ["t", "far"]})
    refused = await live.refused("PUT", "/connectors/far/start")
    assert (refused.status, refused.code, refused.message) == (
        400, ILLEGAL_ARGUMENT,
        f"Connector app counts on broker cluster:{key('default')} but topic:{key('far')} is on another broker "
        f"cluster:{key('other')}",
    )  # fmt: skip
    await live.delete("connectors", "far")
    await live.act("topics", "far", "stop")
    await live.reaches("topics", "far", None)
    await live.delete("topics", "far")
    await system.ok("delete", "brokercluster", "other", "--yes")


async def test_a_worker_that_is_down_is_told_and_the_connector_comes_back(
    live: JsClient, system: Keelman, tmp_path: Path
) -> None:
    await live.create("connectors", **sink("out", tmp_path / "out"))
    await live.act("connectors", "out", "start")
    await live.reaches("connectors", "out", "RUNNING")
    (workload,) = [entry for entry in await system.items("workloads") if entry["name"].startswith("worker/")]
    os.kill(int(workload["status"]["pid"]), signal.SIGKILL)

    async def down() -> bool:
        actual_live = await live.get("connectors", "out")
        return "state" not in actual_live and "no worker" in actual_live.get("error", "")

    await eventually(down, what="the worker is down")
    await live.reaches("connectors", "out", "RUNNING")
    await live.act("connectors", "out", "stop")
    await live.delete("connectors", "out")


async def test_classes_are_inspected_and_settings_validated(live: JsClient, system: Keelman, tmp_path: Path) -> None:
    answer = await live.ok("GET", "/inspect/workers/wk")
    assert len(answer["settingDefinitions"]) == 24
    kinds = {class_info["className"]: class_info["classType"] for class_info in answer["classInfos"]}
    assert (kinds[f"{FILE}SourceConnector"], kinds[f"{FILE}SinkConnector"]) == ("source", "sink")
    assert (await live.ok("GET", "/inspect/workers/none"))["classInfos"] == []
    (topic,) = (await live.ok("GET", "/inspect/brokers/default"))["classInfos"]
    assert (topic["className"], topic["classType"]) == ("N/A", "topic")
    assert (await live.refused("GET", "/inspect/brokers/none")).code == NO_SUCH
    report = await live.ok("PUT", "/validate/connectors", source("v", tmp_path / "f", **{"batch.size": "many"}))
    wrong = {
        setting["value"]["key"]: setting["value"]["errors"]
        for setting in report["settings"]
        if setting["value"]["errors"]
    }
    assert (report["errorCount"], list(wrong)) == (1, ["batch.size"])
    right = await live.ok("PUT", "/validate/connector", source("v", tmp_path / "f"))
    assert right["errorCount"] == 0
    await classes_of_files_stay_known(live, system)
    unknown = await live.refused(
        "PUT", "/validate/connector", source("v", tmp_path) | {"connector.class": "com.acme.No"}
    )
    assert (unknown.code, "com.acme.No" in unknown.message) == (ILLEGAL_ARGUMENT, True)
    assert (await live.ok("GET", "/inspect/configurator"))["mode"] == "DOCKER"


async def classes_of_files_stay_known(live: JsClient, system: Keelman) -> None:
    """Files show a class's description as a worker cluster reported it, also after the gateway was killed."""
    name = f"{FILE}SourceConnector"
    data = jar_files.jar_bytes([jar_files.class_bytes(name.replace(".", "/"), jar_files.SOURCE)], {})
    sent = await live.client.post("/v0/files", files={"file": ("classes.jar", data)})
    assert sent.status_code == 200, sent.text

    async def told() -> Json:
        (info,) = (await live.get("files", "classes.jar"))["classInfos"]
        assert info["className"] == name
        keys = {definition["key"]: definition["documentation"] for definition in info["settingDefinitions"]}
        assert keys.keys() >= {"file", "batch.size", "topicKeys", "kind"}
        return info

    before = await told()
    old = system.pid_of("gateway")
    os.kill(old, signal.SIGKILL)

    async def back() -> Json:
        assert system.pid_of("gateway") != old
        with contextlib.suppress(httpx.TransportError):
            return await told()

    assert await eventually(back, what="the gateway is back") == before
    await live.delete("files", "classes.jar")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with running_postgresql({}) as database:
        with psycopg.connect(database.url("postgres")) as connection:
            connection.execute(TABLES)
        yield database


@pytest.fixture(scope="module")
async def driven(live: JsClient) -> JsClient:
    """The same client, with the worker clusters `driven`, which has a driver and runs, and `stopped`."""
    (node,) = await live.list("nodes")
    (driver,) = (await POSTGRES.path()).rglob("postgresql-*.jar")
    sent = await live.client.post("/v0/files", files={"file": ("driver.jar", driver.read_bytes())})
    assert sent.status_code == 200, sent.text
    settings = {"nodeNames": [node["hostname"]], "brokerClusterKey": "default"}
    await live.create("workers", name="stopped", **settings)
    await live.create("workers", name="driven", sharedJarKeys=["driver.jar"], **settings)
    await live.act("workers", "driven", "start")
    await live.reaches("workers", "driven", "RUNNING")
    return live


@needs_java()
@pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed")
async def test_tables_of_a_database_are_told_with_columns_and_keys(driven: JsClient, server: PostgresqlServer) -> None:
    query: dict[str, Any] = {
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "user": USER, "password": "no secret", "workerClusterKey": "driven",
    }  # fmt: skip
    # The first request starts a Java virtual machine, which on a busy machine may take longer than an answer's limit.
    answer = await eventually(lambda: driven.ok("POST", "/inspect/rdb", query))
    place = {"catalogPattern": "postgres", "schemaPattern": "public"}
    tables = {table["name"]: table for table in answer["tables"]}
    assert answer["name"] == "postgresql"
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
    (note,) = (await driven.ok("POST", "/inspect/rdb", query | {"schemaPattern": "oth%"}))["tables"]
    assert (note["schemaPattern"], note["name"]) == ("other", "notes")
    assert (await driven.ok("POST", "/inspect/rdb", query | {"tableName": "none"}))["tables"] == []

    for changed, code, message in (
        ({"url": "jdbc:mysql://127.0.0.1/x"}, ILLEGAL_ARGUMENT, "no JDBC driver for jdbc:mysql"),
        ({"url": "jdbc:postgresql://127.0.0.1:1/x"}, ILLEGAL_ARGUMENT, "refused"),
        ({"url": f"{query['url']}none"}, ILLEGAL_ARGUMENT, 'database "postgresnone" does not exist'),
        ({"url": "postgresql://x"}, ILLEGAL_ARGUMENT, "a JDBC URL is needed"),
        ({"workerClusterKey": "stopped"}, DATA_CHECK, f"type:worker  {key('stopped')} MUST be running"),
        ({"workerClusterKey": "none"}, DATA_CHECK, f"type:worker {key('none')} does not exist "),
    ):
        refused = await driven.refused("POST", "/inspect/rdb", query | changed)
        assert (refused.code, message in refused.message, "no secret" in refused.message) == (code, True, False), (
            refused
        )
