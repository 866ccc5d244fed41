"""Secrets in the state service: sealed in its database, hidden from users, handed to agents."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import broker_cluster_pb2, worker_cluster_pb2
from keelman.api.event.v1 import event_pb2
from keelman.model.annotations import Annotations
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import InvalidArgument
from keelman.rpc.errors import translated
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.secrets.sealed_rows import rekey_file
from support.eventually import eventually
from support.state.service import Agent, Clients, brokers_pb, state_in_loop, workers_pb
from support.state.stores import open_store

pytestmark = pytest.mark.component
CANARY = "canary-4711"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{CANARY}-jaas";'
PROPERTIES = {
    "sasl.jaas.config": JAAS,
    "producer.ssl.key.password": f"{CANARY}-key",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.file.param.token": f"{CANARY}-param",
    "consumer.ssl.keystore.password": "${file:/etc/secrets:keystore}",
}
HIDDEN = PROPERTIES | dict.fromkeys(
    ("sasl.jaas.config", "producer.ssl.key.password", "config.providers.file.param.token"), "[hidden]"
)


def texts_of(home: Path) -> bytes:
    """The contents of the database's files."""
    return b"".join(file.read_bytes() for file in (home / "state").glob("state.db*"))


async def create(clients: Clients, name: str = "demo", **more: Any) -> worker_cluster_pb2.WorkerCluster:
    spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="default", count=1, properties=PROPERTIES)
    spec.extra.update({"node": {"user": "me", "password": f"{CANARY}-extra"}})
    request = workers_pb.CreateWorkerClusterRequest(name=name, spec=spec, **more)
    return (await clients.clusters.CreateWorkerCluster(request)).worker_cluster


async def update(clients: Clients, name: str, spec: Any, *paths: str) -> worker_cluster_pb2.WorkerCluster:
    request = workers_pb.UpdateWorkerClusterRequest(name=name, spec=spec)
    request.update_mask.paths.extend(paths)
    with translated():
        return (await clients.clusters.UpdateWorkerCluster(request)).worker_cluster


async def test_secrets_are_sealed_hidden_and_handed_to_agents(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _), Agent(clients, "n1") as agent:
        await clients.create_managed("default", "n1")
        await eventually(lambda: "broker/default/0" in agent.workloads)
        response = await create(clients, request_id="one")
        assert dict(response.spec.properties) == HIDDEN
        assert response.spec.extra["node"]["password"] == "[hidden]"
        assert (await create(clients, request_id="one")) == response
        await clients.start_workers("demo")
        real = (await eventually(lambda: agent.workloads.get("worker/demo/0"))).spec.worker.properties
        assert {key: real[key] for key in PROPERTIES} == PROPERTIES
        listed = (await clients.workloads())["worker/demo/0"].spec.worker.properties
        assert {key: listed[key] for key in PROPERTIES} == HIDDEN

        # Get, edit, update: only the edited part changes.
        seen = await clients.worker_cluster("demo")
        same = await update(clients, "demo", seen.spec)
        assert same.generation == seen.generation
        seen.spec.properties["producer.ssl.key.password"] = f"{CANARY}-other"
        changed = await update(clients, "demo", seen.spec, "properties")
        assert changed.generation == seen.generation + 1
        assert dict(changed.spec.properties) == HIDDEN

        named = r"spec\.properties\.config\.providers\.file\.param\.token"
        with pytest.raises(InvalidArgument, match=named), translated():
            await clients.create_workers("other", count=1, properties=HIDDEN)
        bad = PROPERTIES | {"listeners": f"http://me:{CANARY}-url@h:1", "group.id": "g"}
        with pytest.raises(InvalidArgument) as refused:
            await update(clients, "demo", worker_cluster_pb2.WorkerClusterSpec(count=1, properties=bad), "properties")
        assert CANARY not in str(refused.value) + str(refused.value.violations)
        assert CANARY.encode() not in texts_of(tmp_path)
        modes = {f.name: f.stat().st_mode & 0o777 for f in (tmp_path / "state").iterdir() if f.is_file()}
        assert {"state.db", "state.db-wal", "state.db.lock", "secrets.key"} <= modes.keys()
        assert set(modes.values()) == {0o600}
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700

    async with state_in_loop(tmp_path) as (clients, _), Agent(clients, "n1") as agent:
        real = (await eventually(lambda: agent.workloads.get("worker/demo/0"))).spec.worker.properties
        expected = PROPERTIES | {"producer.ssl.key.password": f"{CANARY}-other"}
        assert {key: real[key] for key in PROPERTIES if key != "producer.ssl.key.password"} == {
            key: expected[key] for key in PROPERTIES if key != "producer.ssl.key.password"
        }
        assert (await clients.worker_cluster("demo")).spec.extra["node"]["user"] == "me"


async def test_a_broker_clusters_secrets_stay_when_it_is_shown_and_sent_back(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        external = broker_cluster_pb2.ExternalBrokers(
            bootstrap_servers="127.0.0.1:1", client_properties={"sasl.jaas.config": JAAS, "client.id": "me"}
        )
        spec = broker_cluster_pb2.BrokerClusterSpec(external=external)
        request = brokers_pb.CreateBrokerClusterRequest(name="far", spec=spec)
        broker_cluster = (await clients.brokers.CreateBrokerCluster(request)).broker_cluster
        assert dict(broker_cluster.spec.external.client_properties) == {
            "sasl.jaas.config": "[hidden]",
            "client.id": "me",
        }
        broker_cluster.spec.external.client_properties["client.id"] = "you"
        await clients.brokers.UpdateBrokerCluster(
            brokers_pb.UpdateBrokerClusterRequest(name="far", spec=broker_cluster.spec)
        )
        broker_cluster.spec.external.client_properties["ssl.key.password"] = "[hidden]"
        request = brokers_pb.UpdateBrokerClusterRequest(name="far", spec=broker_cluster.spec)
        named = r"spec\.external\.client_properties\.ssl\.key\.password"
        with pytest.raises(InvalidArgument, match=named), translated():
            await clients.brokers.UpdateBrokerCluster(request)
    async with open_store(str(tmp_path / "state" / "state.db")) as store:
        stored = store.snapshot.broker_cluster("far").spec
        assert stored == ExternalBrokers("127.0.0.1:1", {"sasl.jaas.config": JAAS, "client.id": "you"})


async def test_what_an_earlier_keelman_left_in_the_clear_is_sealed_at_the_first_start(tmp_path: Path) -> None:
    path = tmp_path / "state" / "state.db"
    annotations = Annotations(extra={"password": f"{CANARY}-extra"})
    spec = WorkerClusterSpec("far", count=1, properties=PROPERTIES, annotations=annotations)
    async with open_store(str(path)) as store, store.write() as tx:
        broker_clusters.create(tx, "far", ExternalBrokers("127.0.0.1:1"))
        worker_clusters.create(tx, "demo", spec)
    (path.parent / "secrets.key").unlink()
    in_the_clear(path)
    assert CANARY.encode() in texts_of(tmp_path)
    path.chmod(0o644)
    async with open_store(str(path)) as store:
        assert store.snapshot.worker_cluster("demo").spec == spec
        assert CANARY.encode() not in texts_of(tmp_path)
        assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as database:
        (payload,) = database.execute("SELECT payload FROM outbox WHERE name = 'demo'").fetchone()
        (answer,) = database.execute("SELECT answer FROM request").fetchone()
    assert dict(event_pb2.Event.FromString(payload).worker_cluster.spec.properties) == HIDDEN
    cluster = workers_pb.CreateWorkerClusterResponse.FromString(answer).worker_cluster
    assert (dict(cluster.spec.properties), cluster.spec.extra["password"]) == (HIDDEN, "[hidden]")


def in_the_clear(path: Path) -> None:
    """Makes the database as an unsealed keelman would have written it."""
    message = worker_cluster_pb2.WorkerCluster(name="demo")
    message.spec.properties.update(PROPERTIES)
    message.spec.extra.update({"password": f"{CANARY}-extra"})
    event = event_pb2.Event(name="demo", worker_cluster=message).SerializeToString()
    answer = workers_pb.CreateWorkerClusterResponse(worker_cluster=message).SerializeToString()
    with sqlite3.connect(path) as database:
        (stored,) = database.execute("SELECT payload FROM resource WHERE noun = 'worker_cluster'").fetchone()
        payload = json.loads(stored)
        spec = payload["spec"]
        spec["properties"], spec["annotations"]["extra"] = PROPERTIES, {"password": f"{CANARY}-extra"}
        database.execute("UPDATE resource SET payload = ? WHERE noun = 'worker_cluster'", (json.dumps(payload),))
        database.execute("UPDATE outbox SET payload = ? WHERE name = 'demo'", (event,))
        database.execute("INSERT INTO request VALUES ('one', 'CreateWorkerCluster', 1, ?)", (answer,))
        database.execute("DELETE FROM sealing")
    database.close()


async def test_a_change_of_the_key_that_was_cut_off_is_finished_by_the_next_start(tmp_path: Path) -> None:
    path, key = tmp_path / "state.db", tmp_path / "secrets.key"
    spec = ExternalBrokers("127.0.0.1:1", {"ssl.key.password": CANARY})
    async with open_store(str(path)) as store, store.write() as tx:
        broker_clusters.create(tx, "far", spec)
    before = key.read_bytes()
    await rekey_file(str(path), key)
    after = key.read_bytes()
    key.rename(tmp_path / "secrets.key.new")
    key.write_bytes(before)
    async with open_store(str(path)) as store:  # cut off after the commit
        assert store.snapshot.broker_cluster("far").spec == spec
    assert key.read_bytes() == after
    (tmp_path / "secrets.key.new").write_bytes(before)
    async with open_store(str(path)) as store:  # cut off before it
        assert store.snapshot.broker_cluster("far").spec == spec
    assert key.read_bytes() == after
