"""Dedicated connectors: their legal specs, the resources created with them, and the stored state of both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from keelman.api.connect.v1 import worker_configuration_service_pb2 as wf
from keelman.model.annotations import Annotations, Origin
from keelman.model.cluster import ClusterGoal, ExternalBrokers
from keelman.model.connectors.dedicated_connector import (
    Capacity,
    DedicatedConnectorSpec,
    DedicatedGoal,
    WorkerConfigurationRef,
)
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, KeelmanError
from keelman.model.operation import OperationKind, OperationState
from keelman.state.clusters import broker_clusters
from keelman.state.clusters.worker_clusters import own_name
from keelman.state.dedicated.life import create, delete, pause, restart, resume, update
from keelman.state.dedicated.operations import noted
from keelman.state.nouns import worker_configuration
from keelman.state.nouns.dedicated_connector import dedicated_message
from keelman.state.nouns.dedicated_wire import spec_message, spec_of
from keelman.state.nouns.operation import operation_message
from keelman.state.operations.moves import ended
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from support.state.stores import open_store

CONFIG = {"connector.class": "x.Source", "db.password": "s3cret"}
SPEC = DedicatedConnectorSpec(
    "orders", CONFIG, bootstrap_servers="b:2, a:1", capacity=Capacity(1),
    annotations=Annotations(origin=Origin("x", "1", "orders")),
)  # fmt: skip


@asynccontextmanager
async def a_store(folder: Path) -> AsyncIterator[ResourceStore]:
    async with open_store(str(folder / "state.db")) as store:
        yield store


def end(tx: Transaction, name: str, state: OperationState = OperationState.SUCCEEDED) -> None:
    """Ends the operation on a dedicated connector as the runner does."""
    operation = tx.snapshot.unfinished_operation("dedicated_connector", name)
    assert operation is not None
    over = ended(operation, state, tx.now)
    noted(tx, over)
    tx.put(over)


async def test_it_is_read_again_as_it_was_with_its_secrets_sealed(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            connector, operation = create(tx, "one", SPEC)
        assert [step.name for step in operation.steps] == [
            "reach-brokers", "start-workers", "ask-workers", "write-config", "set-state", "await-state",
        ]  # fmt: skip
        assert dict(dedicated_message(connector).spec.config) == CONFIG | {"db.password": "[hidden]"}
        assert spec_of(spec_message(connector.spec)) == connector.spec
    for file in tmp_path.glob("state.db*"):
        assert b"s3cret" not in file.read_bytes()
    async with a_store(tmp_path) as store:
        assert store.snapshot.dedicated_connectors == {"one": connector}


async def test_what_is_made_with_it(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            connector, _ = create(tx, "one", SPEC)
        cluster = store.snapshot.worker_clusters["one"]
        assert cluster.goal is ClusterGoal.RUNNING
        tail = f"orders_{connector.uid}"
        assert dict(cluster.spec.properties) == {
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "group.id": f"keelman-one-{connector.uid}",
            "config.storage.topic": f"keelman_connect_configs_{tail}",
            "offset.storage.topic": f"keelman_connect_offsets_{tail}",
            "status.storage.topic": f"keelman_connect_status_{tail}",
        }
        async with store.write() as tx:
            same = replace(SPEC, bootstrap_servers="A:1,b:2", annotations=Annotations(), topic_prefix="__x_")
            same = replace(same, topic_suffix="u-2", properties={"offset.storage.topic": "mine"})
            create(tx, "two", same)
            create(tx, "three", replace(same, connector="third"))
            broker_clusters.create(tx, "theirs", ExternalBrokers("c:3"))
            create(tx, "four", replace(SPEC, bootstrap_servers="c:3", annotations=Annotations()))
        clusters = store.snapshot.worker_clusters
        assert clusters["two"].spec.properties["config.storage.topic"] == "__x_configs_orders_u-2"
        assert clusters["two"].spec.properties["offset.storage.topic"] == "mine"
        brokers = {name: cluster.spec.broker_cluster for name, cluster in clusters.items()}
        assert brokers["one"] == brokers["two"] == brokers["three"]
        assert brokers["four"] == "theirs"
        assert len(store.snapshot.broker_clusters) == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"connector": "a b"}, InvalidArgument, "spec.connector: 'a b'"),
        ({"connector": "x" * 129}, InvalidArgument, "spec.connector"),
        ({"config": {}}, InvalidArgument, "spec.config.connector.class"),
        ({"config": CONFIG | {"name": "other"}}, InvalidArgument, "spec.config.name: 'other'"),
        ({"capacity": Capacity(0)}, InvalidArgument, "spec.capacity.count: 0"),
        ({"bootstrap_servers": ""}, InvalidArgument, "spec.brokers"),
        ({"bootstrap_servers": "nowhere"}, InvalidArgument, "bootstrap_servers: 'nowhere'"),
        ({"broker_cluster": "gone"}, InvalidArgument, "spec.broker_cluster: 'gone'"),
        ({"topic_prefix": "a b"}, InvalidArgument, "spec.topic_prefix"),
        ({"topic_prefix": "x" * 240}, InvalidArgument, "spec.topic_prefix"),
        ({"properties": {"group.id": "g"}}, InvalidArgument, "spec.properties.group.id"),
        ({"properties": {"offset.flush.interval.ms": "x"}}, InvalidArgument, "offset.flush.interval.ms"),
        ({}, FailedPrecondition, "spec.origin: 'orders'"),
    ],
)
async def test_what_is_refused_leaves_nothing_behind(
    tmp_path: Path, change: dict[str, object], error: type[KeelmanError], message: str
) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "one", SPEC)
        before = store.revision
        with pytest.raises(error, match=message):
            async with store.write() as tx:
                create(tx, "two", replace(SPEC, **({"annotations": Annotations()} | change if change else {})))  # type: ignore[arg-type]
        assert store.revision == before
        with pytest.raises(AlreadyExists):
            async with store.write() as tx:
                create(tx, "one", SPEC)


async def test_updates(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            connector, _ = create(tx, "one", SPEC)
        other = CONFIG | {"topic": "t"}
        with pytest.raises(FailedPrecondition) as refused:
            async with store.write() as tx:
                update(tx, "one", "", lambda spec: replace(spec, config=other))
        assert refused.value.reason == "OPERATION_UNDER_WAY"
        async with store.write() as tx:
            end(tx, "one")
        with pytest.raises(Conflict) as stale:
            async with store.write() as tx:
                update(tx, "one", "", lambda spec: replace(spec, config=other), version="Kx")
        assert stale.value.reason == "VERSION_MISMATCH"
        for change, message in (
            (lambda s: replace(s, config={"connector.class": "y"}), "connector.class"),
            (lambda s: replace(s, config=other, capacity=Capacity(2)), "not both"),
            (lambda s: replace(s, connector="other"), "spec.connector"),
            (lambda s: replace(s, bootstrap_servers="z:1"), "bootstrap_servers"),
        ):
            with pytest.raises(InvalidArgument, match=message):
                async with store.write() as tx:
                    update(tx, "one", "", change)  # type: ignore[arg-type]
        async with store.write() as tx:
            same, nothing = update(tx, "one", "", lambda s: s)
            assert nothing is None
            changed, operation = update(tx, "one", "", lambda s: replace(s, config=other), version=connector.version)
            assert operation is not None
            assert operation.kind is OperationKind.UPDATE_CONFIG
            change = operation_message(operation).change
        assert dict(change.former.config) == CONFIG | {"db.password": "[hidden]"}
        assert change.wanted.config["topic"] == "t"
        assert changed.version == same.version, "until it is applied"
        async with store.write() as tx:
            end(tx, "one", OperationState.FAILED)
        assert store.snapshot.dedicated_connectors["one"].spec == connector.spec, "it was taken back"
        assert store.snapshot.dedicated_connectors["one"].version == connector.version
        async with store.write() as tx:
            _, operation = update(tx, "one", "", lambda s: replace(s, capacity=Capacity(2)))
            assert operation is not None
            assert operation.kind is OperationKind.UPDATE_WORKERS
            end(tx, "one")
        outcome = store.snapshot.dedicated_connectors["one"]
        assert (outcome.spec.capacity.count, outcome.version != connector.version) == (2, True)


async def test_verbs_in_their_states(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "one", SPEC)
            end(tx, "one")
        with pytest.raises(FailedPrecondition, match="is RUNNING: it has to be PAUSED") as refused:
            async with store.write() as tx:
                resume(tx, "one", "")
        assert refused.value.reason == "WRONG_STATE"
        async with store.write() as tx:
            restart(tx, "one", "", only_failed=True)
            end(tx, "one")
            pause(tx, "one", "")
            end(tx, "one")
        with pytest.raises(FailedPrecondition, match="skip_health_check"):
            async with store.write() as tx:
                update(tx, "one", "", lambda s: replace(s, config=CONFIG | {"a": "b"}))
        async with store.write() as tx:
            resume(tx, "one", "")
            end(tx, "one", OperationState.FAILED)
        assert store.snapshot.dedicated_connectors["one"].goal is DedicatedGoal.PAUSED


async def test_a_delete_ends_what_is_under_way_and_the_brokers_go_with_the_last(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            _, creating = create(tx, "one", SPEC)
            create(tx, "two", replace(SPEC, annotations=Annotations()))
            _, deleting = delete(tx, "one", "")
            _, again = delete(tx, "one", "")
        assert again.name == deleting.name
        assert store.snapshot.operations[creating.name].state is OperationState.CANCELED
        with pytest.raises(FailedPrecondition, match="origin"):
            async with store.write() as tx:
                create(tx, "three", SPEC)
        for name, left in (("one", 1), ("two", 0)):
            async with store.write() as tx:
                if name == "two":
                    delete(tx, name, "")
                tx.drop("worker_cluster", name)
                end(tx, name)
            running = [c for c in store.snapshot.broker_clusters.values() if c.goal is ClusterGoal.RUNNING]
            assert len(running) == left
        assert store.snapshot.dedicated_connectors == {}


async def test_its_worker_cluster_is_changed_with_it_only(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "one", SPEC)
            with pytest.raises(FailedPrecondition) as refused:
                own_name(tx, "one")
            assert own_name(tx, "other") == "other"
        assert refused.value.reason == "OWNED"


async def test_the_revision_of_its_worker_configuration_stays_until_it_is_updated(tmp_path: Path) -> None:
    content = b"key.converter=org.apache.kafka.connect.json.JsonConverter\n"
    content += content.replace(b"key", b"value")
    ref = WorkerConfigurationRef("w")
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            worker_configuration.create(tx, wf.CreateWorkerConfigurationRequest(name="w", content=content))
            connector, _ = create(
                tx, "one", replace(SPEC, worker_configuration=ref, properties={"offset.flush.timeout.ms": "9"})
            )
            end(tx, "one")
            more = wf.CreateWorkerConfigurationRevisionRequest(
                name="w", content=content + b"offset.flush.interval.ms=9\n"
            )
            worker_configuration.create_revision(tx, more)
            update(tx, "one", "", lambda spec: replace(spec, capacity=Capacity(2)))
            end(tx, "one")
        assert connector.spec.worker_configuration == WorkerConfigurationRef("w", 1)
        properties = store.snapshot.worker_clusters["one"].spec.properties
        assert properties["value.converter"] == "org.apache.kafka.connect.json.JsonConverter"
        async with store.write() as tx:
            changed, operation = update(tx, "one", "", lambda spec: replace(spec, worker_configuration=ref))
        assert changed.spec.worker_configuration == WorkerConfigurationRef("w", 2)
        assert operation is not None
        assert operation.facts["wanted_workers"]["properties"]["offset.flush.interval.ms"] == "9"


async def test_converters_of_plugins_are_in_the_configuration_that_its_workers_are_given(tmp_path: Path) -> None:
    """The plugin's converters are in its connector's configuration; its workers get keelman's own."""
    theirs = {"key.converter": "com.acme.Key", "value.converter": "com.acme.Value", "value.converter.x": "1"}
    content = "\n".join(f"{key}={text}" for key, text in theirs.items()).encode()
    ref, string = WorkerConfigurationRef("w"), "org.apache.kafka.connect.storage.StringConverter"
    spec = replace(SPEC, config={**CONFIG, "key.converter": string}, worker_configuration=ref)
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            worker_configuration.create(tx, wf.CreateWorkerConfigurationRequest(name="w", content=content))
            connector, operation = create(tx, "one", spec)
            end(tx, "one")
        assert connector.spec.config == spec.config, "the sent request is unchanged"
        values = {key: text for key, text in theirs.items() if key.startswith("value.")}
        assert operation.facts["config"] == {**values, **spec.config}, "a connector's own come before"
        properties = store.snapshot.worker_clusters["one"].spec.properties
        assert (properties["key.converter"], properties["value.converter"]) == (string, string)
        assert "value.converter.x" not in properties
        async with store.write() as tx:
            _, counted = update(tx, "one", "", lambda spec: replace(spec, capacity=Capacity(2)))
            end(tx, "one")
            _, changed = update(tx, "one", "", lambda spec: replace(spec, worker_configuration=None))
        assert counted is not None
        assert changed is not None
        assert (counted.facts["reconfigures"], changed.facts["reconfigures"]) == (False, True)
        assert changed.facts["config"] == spec.config


@pytest.mark.parametrize("state", [OperationState.SUCCEEDED, OperationState.FAILED])
async def test_a_worker_configuration_that_an_update_may_go_back_to_is_not_deleted(
    tmp_path: Path, state: OperationState
) -> None:
    content = b"key.converter=org.apache.kafka.connect.json.JsonConverter\n"
    content += content.replace(b"key", b"value")
    delete_it = wf.DeleteWorkerConfigurationRequest(name="w")
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            worker_configuration.create(tx, wf.CreateWorkerConfigurationRequest(name="w", content=content))
            create(tx, "one", replace(SPEC, worker_configuration=WorkerConfigurationRef("w")))
            end(tx, "one")
            update(tx, "one", "", lambda spec: replace(spec, worker_configuration=None))
        assert store.snapshot.users_of_configuration("w") == ["one"]
        with pytest.raises(FailedPrecondition, match="'w' is used by one"):
            async with store.write() as tx:
                worker_configuration.delete(tx, delete_it)
    async with a_store(tmp_path) as store:
        assert store.snapshot.users_of_configuration("w") == ["one"], "the database has it too"
        async with store.write() as tx:
            end(tx, "one", state)
        is_back = state is OperationState.FAILED
        assert store.snapshot.users_of_configuration("w") == (["one"] if is_back else [])
