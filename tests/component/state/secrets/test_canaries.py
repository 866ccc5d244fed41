"""Secrets planted wherever a system accepts them are found where a process needs them, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import httpx
import psutil
import pytest
import sqlalchemy as sa

from keelman.api.connect.v1 import broker_cluster_pb2, document_pb2, worker_cluster_pb2
from keelman.api.connect.v1 import document_service_pb2 as documents_pb
from keelman.api.event.v1.event_pb2 import Event
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.api.node.v1.plan_service_pb2 import ListPlansRequest
from keelman.api.node.v1.plan_service_pb2_grpc import PlanServiceStub
from keelman.kafka.clients import low_level_client
from keelman.kafka.tables.reading import read_topic
from keelman.model.errors import Unavailable
from keelman.rpc.channels import Channel, channel
from keelman.rpc.watching import watch
from keelman.runtime.home import Home
from support.cli.system import FILE, STRING, Keelman
from support.eventually import eventually
from support.servers.postgresql import BINARIES, PostgresqlServer, running_postgresql
from support.state.service import Clients, brokers_pb, workers_pb

pytestmark = pytest.mark.component
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{}";'
WORKER = {
    "sasl.jaas.config": LOGIN.format("canary-jaas"),
    "ssl.keystore.password": "canary-keystore",
    "ssl.truststore.password": "canary-truststore",
    "ssl.key.password": "canary-key",
    "producer.sasl.jaas.config": LOGIN.format("canary-producer"),
    "consumer.ssl.key.password": "canary-consumer",
    "admin.ssl.truststore.password": "canary-admin",
    "config.providers.file.param.token": "canary-param",
    "value.converter.basic.auth.user.info": "me:canary-basic",
    "value.converter.schema.registry.url": "http://me:canary-url@127.0.0.1:1",
}
PLAIN = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "key.converter": STRING,
    "value.converter": STRING,
}
FAR = {"ssl.key.password": "canary-client", "sasl.jaas.config": LOGIN.format("canary-far")}
BROKER = {"ssl.key.password": "canary-broker"}
ELSEWHERE = (
    "canary-connector",
    "canary-extra",
    "canary-database",
    "canary-refused",
    "canary-changed",
    "canary-document",
)


@contextlib.asynccontextmanager
async def system(home: Path, database: str) -> AsyncIterator[Keelman]:
    """A whole system with the most verbose logs, and with the events on an external broker cluster.

    `database` is the URL of a database other than its own file, if not empty.
    """
    keelman = Keelman(home)
    loud = ["--set", "state.events_broker_cluster=far"]
    if database:
        loud += ["--set", f"state.database={database}", "--set", f"state.key_file={home / 'secrets.key'}"]
    loud += [w for s in ("state", "gateway", "agent") for w in ("--set", f"{s}.log_level=debug")]
    try:
        await keelman.ok("up", "--detach", "--free-ports", "--no-broker", *loud)
        yield keelman
    finally:
        await keelman.cleaned()


@contextlib.asynccontextmanager
async def watched(link: Channel) -> AsyncIterator[list[Event]]:
    """All events of watches during the block."""
    seen: list[Event] = []

    async def follow() -> None:
        async for _, events in watch(link, ["node", "broker_cluster", "worker_cluster", "workload", "document"]):
            seen.extend(events)

    following = asyncio.ensure_future(follow())
    try:
        yield seen
    finally:
        following.cancel()
        await asyncio.wait([following])


async def plant(keelman: Keelman, clients: Clients, secrets: Path, texts: list[str]) -> str:
    """Creates everything; returns the broker's address. Appends the answers to the given list."""

    async def node() -> str:
        return "".join(n.name for n in (await clients.nodes.ListNodes(ListNodesRequest())).nodes)

    managed = broker_cluster_pb2.ManagedBrokers(nodes=[await eventually(node)], properties=BROKER)
    spec = broker_cluster_pb2.BrokerClusterSpec(managed=managed)
    cluster = await clients.brokers.CreateBrokerCluster(
        brokers_pb.CreateBrokerClusterRequest(name="default", spec=spec)
    )
    texts.append(str(cluster))

    async def running() -> str:
        status = (await clients.broker_cluster("default")).status
        return status.bootstrap_servers if status.state == broker_cluster_pb2.CLUSTER_STATE_RUNNING else ""

    bootstrap = await eventually(running, what="the broker runs")
    external = broker_cluster_pb2.ExternalBrokers(bootstrap_servers=bootstrap, client_properties=FAR)
    spec = broker_cluster_pb2.BrokerClusterSpec(external=external)
    request = brokers_pb.CreateBrokerClusterRequest(name="far", spec=spec, request_id="far")
    texts.append(str(await clients.brokers.CreateBrokerCluster(request)))
    texts.append(str(await clients.brokers.CreateBrokerCluster(request)))
    expected_spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="far", count=1, properties=WORKER | PLAIN)
    expected_spec.extra.update({"node": {"user": "me", "password": "canary-extra"}})
    create = workers_pb.CreateWorkerClusterRequest(name="demo", spec=expected_spec)
    texts.append(str(await clients.clusters.CreateWorkerCluster(create)))
    document = document_pb2.Document(kind="acme.node", key="n1", secrets={"ssh": "canary-document"})
    document.content.update({"token": "canary-document"})
    texts.append(str(await clients.documents.PutDocument(documents_pb.PutDocumentRequest(document=document))))
    texts.append(await keelman.ok("start", "wc", "demo", "--wait"))
    keys = {
        "connector.class": f"{FILE}SourceConnector", "file": str(secrets.with_name("lines")), "topic": "lines",
        "connection.password": f"${{file:{secrets}:password}}",
    }  # fmt: skip
    words = [w for key, value in keys.items() for w in ("--set", f"{key}={value}")]
    texts.append(await keelman.ok("create", "connector", "demo/lines", *words, "--wait", "-o", "yaml"))
    return bootstrap


async def exercise(keelman: Keelman, clients: Clients, texts: list[str]) -> None:
    """Reads everything, changes it, sends requests that are refused, and restarts parts of it."""
    texts += [
        await keelman.ok("get", kind, "-o", "yaml") for kind in ("bc", "wc", "workers", "workloads", "connectors")
    ]
    shown = await keelman.ok("describe", "wc", "demo")
    assert "[hidden]" in shown
    texts += [shown, await keelman.ok("describe", "bc", "far"), await keelman.ok("describe", "cn", "demo/lines")]
    texts.append(await keelman.ok("status"))
    bad = (
        "sasl.jaas.config=canary-refused;",
        "security.protocol=SASL_PLAINTEXT",
        "listeners=http://u:canary-refused@h",
    )
    create = ("create", "wc", "bad", "--broker-cluster", "far")
    refused = await keelman.run(*create, *(word for assignment in bad for word in ("--set", assignment)))
    assert refused.code == 2, refused
    again = await keelman.run(*create, "--set", "ssl.key.password=[hidden]")
    assert "spec.properties.ssl.key.password" in again.err
    texts += [refused.out, refused.err, again.out, again.err]
    changes = ("--set", "offset.flush.interval.ms=2000", "--set", "consumer.ssl.key.password=canary-changed")
    texts.append(await keelman.ok("update", "wc", "demo", *changes, "--wait", "-o", "yaml"))
    texts.append(await keelman.ok("logs", "wc", "demo"))
    before = keelman.pid_of("state")
    psutil.Process(before).kill()

    async def again_ready() -> bool:
        with contextlib.suppress(Unavailable):
            ready = (await clients.worker_cluster("demo")).status.ready_workers
            return bool(ready) and keelman.pid_of("state") != before
        return False

    await eventually(again_ready, what="state is back")
    psutil.Process((await clients.workloads())["worker/demo/0"].status.pid).kill()

    async def restarted() -> bool:
        status = (await clients.workloads())["worker/demo/0"].status
        return status.restarts > 0 and bool((await clients.worker_cluster("demo")).status.ready_workers)

    await eventually(restarted, what="the worker is back")
    texts.append(str(await clients.workloads()))
    async with channel(keelman.system["state"]) as link:
        plans = await PlanServiceStub(link).ListPlans(ListPlansRequest())
    assert plans.plans
    texts.append(str(plans))


async def topics(bootstrap: str) -> dict[str, bytes]:
    """The contents of all topics, uncompressed."""
    properties = {"bootstrap.servers": bootstrap}
    async with low_level_client(properties, client_id="canaries", timeout_ms=10_000) as client:
        names = sorted((await client.fetch_all_metadata()).topics())
    actual_topics = {}
    for name in names:
        rows = await read_topic(properties, name, client_id="canaries", seconds=300)
        actual_topics[name] = b"\n".join((row.value or b"") + row.key for row in rows)
    return actual_topics


def canaries_in(data: bytes) -> set[str]:
    """Names of the canaries in some bytes."""
    every = (*WORKER.values(), *FAR.values(), *BROKER.values(), *ELSEWHERE)
    names = {"canary-" + text.rpartition("canary-")[2].split('"')[0].split("@")[0] for text in every}
    return {name for name in names if name.encode() in data}


def of(values: Mapping[str, str]) -> set[str]:
    """Names of the canaries in some properties' values."""
    return canaries_in("\n".join(values.values()).encode())


def in_files(root: Path) -> dict[str, set[str]]:
    """The canaries in files below a folder.

    Each such file must be readable by its owner alone and be in a folder that is closed to others.
    """
    answer = {}
    for file in root.rglob("*"):
        if file.is_file() and not file.is_symlink() and (names := canaries_in(file.read_bytes())):
            answer[str(file.relative_to(root))] = names
            assert file.stat().st_mode & 0o077 == 0, f"{file} is open to others"
            closed = [p for p in file.parents if p.is_relative_to(root) and p.stat().st_mode & 0o077 == 0]
            assert closed, f"no folder of {file} is closed to others"
    return answer


def in_tables(url: str) -> dict[str, bytes]:
    """The contents of all tables of a database, uncompressed."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        tables = sa.MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            return {
                name: b"\n".join(
                    value if isinstance(value, bytes) else str(value).encode()
                    for row in connection.execute(sa.select(table))
                    for value in row
                )
                for name, table in tables.tables.items()
            }
    finally:
        engine.dispose()


def in_server(server: PostgresqlServer, url: str) -> dict[str, set[str]]:
    """The canaries in a PostgreSQL server: in its tables, its files and its log."""
    held = in_tables(url)
    assert b"acme.node" in held["resource"], "the present values are found"
    held |= {str(file): file.read_bytes() for file in server.folder.rglob("*") if file.is_file()}
    assert any(b"acme.node" in data for name, data in held.items() if "pg_wal" in name)
    return {name: names for name, data in held.items() if (names := canaries_in(data))}


async def failed_start(home: Path) -> str:
    """The output of a state service whose database does not answer."""
    home.mkdir()
    settings = home / "state.toml"
    settings.write_text('database = "postgresql://me:canary-database@127.0.0.1:1/none"\n')
    output = ""
    for verb in ("run", "config"):
        command = [sys.executable, "-m", "keelman.state", verb, "--file", str(settings), "--home", str(home)]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        async with asyncio.timeout(300):
            output += (await process.communicate())[0].decode()
    settings.unlink()
    return output


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresqlServer | None]:
    if request.param == "sqlite":
        yield None
        return
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    with running_postgresql({"log_statement": "all"}) as database:
        yield database


@pytest.mark.slow
async def test_secrets_are_where_a_process_needs_them_and_nowhere_else(
    tmp_path: Path, server: PostgresqlServer | None
) -> None:
    home, secrets, text = Home(tmp_path / "home"), tmp_path / "connector.properties", list[str]()
    database = "" if server is None else server.database()
    secrets.write_text("password=canary-connector\n")
    secrets.with_name("lines").write_text("one\ntwo\n")
    async with (
        system(home.root, database) as keelman,
        channel(keelman.system["gateway"]) as connection,
        watched(connection) as seen,
    ):
        clients = Clients(connection)
        bootstrap = await plant(keelman, clients, secrets, text)
        async with httpx.AsyncClient(base_url=f"{keelman.system['http']}/clusters/demo") as rest:
            loud = await rest.put("/admin/loggers/root", json={"level": "DEBUG"})
            assert loud.status_code == 200, loud.text
            text += [(await rest.get("/connectors/lines")).text, (await rest.get("/connectors/lines/tasks")).text]
        await exercise(keelman, clients, text)
        assert {e.name for e in seen} >= {"default", "far", "demo", "worker/demo/0", "acme.node//n1"}

        for process in keelman.processes():
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                for part in ("cmdline", "environ"):
                    assert not canaries_in(Path(f"/proc/{process.pid}/{part}").read_bytes()), (process, part)
        held = await topics(bootstrap)
        assert {
            "keelman.events.worker_cluster.v1",
            "keelman.events.document.v1",
            "keelman.reports.worker.v1",
        } <= held.keys()
        assert server is None or in_server(server, database) == {}
        answer, (spark,) = in_files(home.root), [path.name for path in home.workloads.glob("spark-*")]
    text.append(await failed_start(tmp_path / "failed"))
    assert {topic: names for topic, data in held.items() if (names := canaries_in(data))} == {}
    assert canaries_in("\n".join(text).encode()) == set()
    assert canaries_in(b"\n".join(event.SerializeToString() for event in seen)) == set()
    worker = of(WORKER) - {"canary-consumer"} | {"canary-changed"}
    needed = {
        "agent/assignments.json": worker | of(FAR) | of(BROKER),
        "workloads/worker-demo-0/worker.properties": worker | of(FAR),
        "workloads/worker-demo-0/reports.properties": of(FAR),
        f"workloads/{spark}/reports.properties": of(FAR),
        "workloads/broker-default-0/settings.toml": of(BROKER),
        "workloads/broker-default-0/data/server.properties": of(BROKER),
    }
    assert {file: names for file, held in answer.items() if (names := held - needed.get(file, set()))} == {}
    assert answer[f"workloads/{spark}/reports.properties"] == of(FAR), "the present values are found"
    assert answer["workloads/worker-demo-0/worker.properties"] >= worker
