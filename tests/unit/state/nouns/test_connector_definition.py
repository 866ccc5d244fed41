"""Connector definitions: their legal specs, and their stored state."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_ABSENT, DEFINITION_GOAL_RUNNING
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.model.annotations import Annotations, Origin
from keelman.model.cluster import ClusterGoal, ExternalBrokers, WorkerClusterSpec
from keelman.model.connectors.connector_definition import ConnectorDefinitionSpec, DefinitionGoal
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.nouns.connector_definition import (
    ConnectorDefinitionApi,
    apply,
    create,
    definition_message,
    delete,
    update,
)
from keelman.state.nouns.parts import NounParts
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import WORKER_CLUSTER
from keelman.state.resources.store import ResourceStore
from support.state.stores import open_store

CONFIG = {"connector.class": "x.Source", "db.password": "s3cret", "odd": " é\n\t", "empty": ""}
SPEC = ConnectorDefinitionSpec("demo", "orders", CONFIG)
OHARA = Annotations(origin=Origin("ohara", "default", "orders"))


@asynccontextmanager
async def a_store(folder: Path) -> AsyncIterator[ResourceStore]:
    async with open_store(str(folder / "state.db")) as store:
        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
            worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
        yield store


async def test_it_is_read_again_as_it_was_with_its_secrets_sealed(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "orders", SPEC)
            worker_clusters.start(tx, "demo", "")
        async with store.write() as tx:
            stored, operation = apply(
                tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=DEFINITION_GOAL_RUNNING)
            )
        assert operation.facts["config"] == CONFIG
        assert [step.name for step in operation.steps] == ["ask-workers", "write-config", "set-state", "await-state"]
        shown = definition_message(stored)
        assert dict(shown.spec.config) == CONFIG | {"db.password": "[hidden]"}
        assert (shown.status.applying, shown.status.operation) == (True, operation.name)
    for file in tmp_path.glob("state.db*"):
        assert b"s3cret" not in file.read_bytes()
    async with open_store(str(tmp_path / "state.db")) as store:
        assert store.snapshot.connector_definitions == {"orders": stored}
        assert dict(definition_message(stored, with_secrets=True).spec.config) == CONFIG
        with pytest.raises(FailedPrecondition) as refused:
            async with store.write() as tx:
                apply(tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=DEFINITION_GOAL_ABSENT))
        assert refused.value.reason == "OPERATION_UNDER_WAY"
        with pytest.raises(FailedPrecondition, match="wait for its end, or cancel it"):
            async with store.write() as tx:
                delete(tx, "orders", "", keep_connector=True)


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        (ConnectorDefinitionSpec("gone", "orders"), InvalidArgument, "spec.worker_cluster: 'gone' .*demo"),
        (ConnectorDefinitionSpec("demo", "  "), InvalidArgument, "spec.connector: "),
        (ConnectorDefinitionSpec("demo", "a\nb"), InvalidArgument, "spec.connector: "),
        (ConnectorDefinitionSpec("demo", "c", {"name": "other"}), InvalidArgument, "spec.config.name: 'other'"),
        (ConnectorDefinitionSpec("demo", "c", {"x": "y" * (600 << 10)}), InvalidArgument, "spec.config: .* bytes"),
        (ConnectorDefinitionSpec("demo", "taken"), FailedPrecondition, "spec.connector: .* definition 'first'"),
        (ConnectorDefinitionSpec("demo", "c", {}, OHARA), FailedPrecondition, "spec.origin: .* definition 'first'"),
    ],
)
async def test_what_is_refused(
    tmp_path: Path, spec: ConnectorDefinitionSpec, kind: type[KeelmanError], message: str
) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "first", ConnectorDefinitionSpec("demo", "taken", {}, OHARA))
        with pytest.raises(kind, match=message):
            async with store.write() as tx:
                create(tx, "second", spec)


async def test_it_outlives_its_worker_cluster(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "orders", SPEC)
            with pytest.raises(FailedPrecondition) as refused:
                apply(tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=DEFINITION_GOAL_RUNNING))
            assert refused.value.reason == "NOT_RUNNING"
            tx.drop(WORKER_CLUSTER, "demo")
        assert store.snapshot.definitions_on("demo") == {"orders"}
        async with store.write() as tx:
            with pytest.raises(FailedPrecondition) as refused:
                apply(tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=DEFINITION_GOAL_RUNNING))
            assert refused.value.reason == "NO_WORKER_CLUSTER"
            _, operation = apply(tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=DEFINITION_GOAL_ABSENT))
            assert operation.facts["gone"] is True


async def test_generations_count_what_reaches_workers(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store, store.write() as tx:
        create(tx, "orders", SPEC)
        worker_clusters.create(tx, "other", WorkerClusterSpec("default", count=1))

        def labelled(spec: ConnectorDefinitionSpec) -> ConnectorDefinitionSpec:
            return ConnectorDefinitionSpec(spec.worker_cluster, spec.connector, spec.config, Annotations("text"))

        assert update(tx, "orders", "", labelled).generation == 1
        moved = update(tx, "orders", "", lambda spec: ConnectorDefinitionSpec("other", spec.connector, spec.config))
        assert (moved.generation, moved.goal) == (2, DefinitionGoal.ABSENT)
        with pytest.raises(InvalidArgument, match=r"spec\.origin"):
            update(tx, "orders", "", lambda spec: ConnectorDefinitionSpec("other", "orders", CONFIG, OHARA))
        assert delete(tx, "orders", "", keep_connector=False) == moved
        assert not tx.snapshot.connector_definitions


@pytest.mark.parametrize(("goal", "is_shown"), [(ClusterGoal.RUNNING, True), (ClusterGoal.STOPPED, False)])
async def test_what_workers_said_before_they_stopped_is_not_shown(
    tmp_path: Path, goal: ClusterGoal, is_shown: bool
) -> None:
    reports = Reports(Hub())
    connector = Connector(worker_cluster="demo", name="orders")
    reports.connectors.fold(ConnectorReport(connector=connector, round="1"), "demo/orders")
    reports.connectors.close(ConnectorsReport(worker_cluster="demo", round="1"), "demo")
    reports.connectors.hear("demo")
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "orders", SPEC)
            tx.put(replace(tx.snapshot.worker_cluster("demo"), goal=goal))
        api = ConnectorDefinitionApi(cast("NounParts", SimpleNamespace(store=store, reports=reports)))
        request = pb.GetConnectorDefinitionRequest(name="orders")
        connector_definition = (await api.GetConnectorDefinition(request, cast("Any", None))).connector_definition
        assert connector_definition.status.HasField("connector") is is_shown


async def test_a_worker_cluster_that_definitions_name_goes_unless_only_an_unused_one_may(tmp_path: Path) -> None:
    async with a_store(tmp_path) as store:
        async with store.write() as tx:
            create(tx, "orders", SPEC)
        with pytest.raises(FailedPrecondition, match="is used by connector definitions orders") as refused:
            async with store.write() as tx:
                worker_clusters.delete(tx, "demo", "", only_unused=True)
        assert (refused.value.reason, refused.value.metadata) == ("IN_USE", {"connector_definitions": "orders"})
        async with store.write() as tx:
            delete(tx, "orders", "", keep_connector=True)
            worker_clusters.delete(tx, "demo", "", only_unused=True)
        with pytest.raises(FailedPrecondition, match="is being deleted"):
            async with store.write() as tx:
                create(tx, "late", SPEC)
