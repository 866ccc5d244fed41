"""Dedicated connectors in the state service alone: stored quotas, and the remains of a create that fails.

The workers are a simulated agent's, so no connector ever comes up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import dedicated_connector_service_pb2 as pb
from keelman.api.connect.v1 import plugin_import_service_pb2 as imports
from keelman.api.connect.v1 import worker_cluster_service_pb2 as wc
from keelman.api.connect.v1 import worker_configuration_service_pb2 as configurations
from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.broker_cluster_pb2 import CLUSTER_STATE_STOPPED, CLUSTER_STATE_STOPPING
from keelman.api.connect.v1.dedicated_connector_pb2 import (
    DedicatedCapacity,
    DedicatedConnectorSpec,
    WorkerConfigurationRef,
)
from keelman.api.connect.v1.operation_service_pb2 import CancelOperationRequest
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.connect.v1.plugin_import_pb2 import PluginContent, PluginSource
from keelman.api.connect.v1.plugin_import_service_pb2_grpc import PluginImportServiceStub
from keelman.model.errors import Exhausted, FailedPrecondition
from keelman.model.operation import OperationKind, OperationTarget
from keelman.state.autoscaling.steps import AWAIT_WORKERS, CLUSTER_UID, FORMER_WORKERS, REASON, WORKERS
from keelman.state.operations.begin import begin, check_no_operation
from keelman.state.resources.store import ResourceStore
from keelman.state.secrets.opening import open_store
from support.eventually import eventually
from support.state.dedicated import FAILED, Dedicated, file_source
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component
STOPPED = (CLUSTER_STATE_STOPPING, CLUSTER_STATE_STOPPED)
CONFIG = file_source("/nowhere/in", "t")
NOWHERE = "127.0.0.1:1"
PROPERTIES = b"key.converter=org.apache.kafka.connect.storage.StringConverter\n" + (
    b"value.converter=org.apache.kafka.connect.storage.StringConverter\n"
)


def origin(key: str, scope: str = "one") -> Origin:
    return Origin(api="test", scope=scope, key=key)


@pytest.fixture
async def clients(tmp_path: Path, url: str) -> AsyncIterator[Clients]:
    async with state_in_loop(tmp_path, database=url) as (state, _):
        yield state


async def exhausted(*calls: Any) -> int:
    """The number of these concurrent calls that are refused for the quota; the others are answered."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(error, Exhausted) and error.reason == "QUOTA" for error in refused), refused
    return len(refused)


async def test_racing_creates_at_the_quota_of_workers(clients: Clients) -> None:
    dedicated = Dedicated(clients.channel)

    def create(name: str, capacity: DedicatedCapacity, scope: str = "one", most: int = 4) -> Any:
        spec = DedicatedConnectorSpec(config=CONFIG, capacity=capacity, origin=origin(name, scope))
        spec.external.bootstrap_servers = NOWHERE
        request = pb.CreateDedicatedConnectorRequest(name=name, spec=spec, max_workers_of_scope=most)
        return dedicated.api.CreateDedicatedConnector(request)

    scaled = DedicatedCapacity(autoscale=Autoscale(min_workers=1, max_workers=3))
    await create("a", scaled)
    single = DedicatedCapacity(count=1)
    assert await exhausted(*(create(f"b{number}", single) for number in range(6))) == 5
    assert await exhausted(create("elsewhere", single, "other"), create("unbound", single, most=0)) == 0
    names = [name for name in await dedicated.names() if name.startswith("b")]
    assert len(names) == 1, "the refused resource does not exist"


async def test_racing_creates_at_the_quotas_of_what_is_kept(clients: Clients) -> None:
    plugins: Any = PluginImportServiceStub(clients.channel)
    source = PluginSource(bucket="some", key="x.zip", content=PluginContent.PLUGIN_CONTENT_ZIP)

    def plugin(number: int) -> Any:
        return plugins.CreatePluginImport(
            imports.CreatePluginImportRequest(
                name=f"p{number}", source=source, origin=origin(f"p{number}"), max_of_scope=2
            )
        )

    def configuration(number: int) -> Any:
        return clients.configurations.CreateWorkerConfiguration(
            configurations.CreateWorkerConfigurationRequest(
                name=f"c{number}", content=PROPERTIES, origin=origin(f"c{number}"), max_of_scope=2
            )
        )

    for make in (plugin, configuration):
        assert await exhausted(*(make(number) for number in range(5))) == 3


async def test_tags_of_plugin_imports_are_no_secrets(clients: Clients) -> None:
    plugins: Any = PluginImportServiceStub(clients.channel)
    request = imports.CreatePluginImportRequest(
        name="p", source=PluginSource(bucket="some", key="x.zip", content=PluginContent.PLUGIN_CONTENT_ZIP)
    )
    request.extra.update({"tags": {"db.password": "blue"}, "db.password": "s3cret"})
    await plugins.CreatePluginImport(request)
    plugin_import = (await plugins.GetPluginImport(imports.GetPluginImportRequest(name="p"))).plugin_import
    assert plugin_import.extra["tags"]["db.password"] == "blue"
    assert plugin_import.extra["db.password"] != "s3cret"


@contextlib.asynccontextmanager
async def failing(tmp_path: Path) -> AsyncIterator[tuple[Clients, Dedicated]]:
    async with state_in_loop(tmp_path, operation_wait_seconds=1.0) as (clients, _), Agent(clients, "n1"):
        yield clients, Dedicated(clients.channel)


async def state_of(clients: Clients, name: str) -> int:
    cluster = await clients.clusters.GetWorkerCluster(wc.GetWorkerClusterRequest(name=name))
    state: int = cluster.worker_cluster.status.state
    return state


async def test_a_create_that_failed_leaves_no_worker_running(bootstrap: str, tmp_path: Path) -> None:
    async with failing(tmp_path) as (clients, single_failing):
        operation = await single_failing.ended(
            await single_failing.create("one", CONFIG, bootstrap, origin=origin("one"))
        )
        assert operation.state == FAILED
        assert await state_of(clients, "one") in STOPPED, "with the operation's end, not later"
        assert await single_failing.state("one") == "FAILED"
        for begun in (
            single_failing.restart,
            lambda name: single_failing.update(name, config=CONFIG | {"topic": "other"}),
        ):
            answer = await begun("one")
            assert [step.name for step in answer.operation.steps][:2] == ["reach-brokers", "start-workers"]
            assert await state_of(clients, "one") not in STOPPED
            assert (await single_failing.ended(answer)).state == FAILED
            assert await state_of(clients, "one") in STOPPED
        answer = await single_failing.update("one", capacity=DedicatedCapacity(count=2))
        assert (await single_failing.ended(answer)).state == FAILED
        assert await state_of(clients, "one") in STOPPED
        spec = (await single_failing.get("one")).spec
        assert (spec.config["topic"], spec.capacity.count) == ("t", 1), "the updated fields are as before"
        request = pb.UpdateDedicatedConnectorRequest(
            name="one", spec=DedicatedConnectorSpec(capacity=DedicatedCapacity(count=6)), max_workers_of_scope=5
        )
        request.update_mask.paths.append("capacity")
        with pytest.raises(Exhausted, match="workers: 0 and 6 more are more than the 5"):
            await single_failing.api.UpdateDedicatedConnector(request)
        assert await state_of(clients, "one") in STOPPED, "a refused request changes nothing"


async def test_a_worker_configuration_is_pinned_to_the_revision_of_the_create(clients: Clients) -> None:
    request = configurations.CreateWorkerConfigurationRequest(name="c", content=PROPERTIES)
    await clients.configurations.CreateWorkerConfiguration(request)
    dedicated = Dedicated(clients.channel)
    await dedicated.create("one", CONFIG, NOWHERE, worker_configuration=WorkerConfigurationRef(name="c"))
    revised = configurations.CreateWorkerConfigurationRevisionRequest(name="c", content=PROPERTIES + b"a=b\n")
    await clients.configurations.CreateWorkerConfigurationRevision(revised)
    assert (await dedicated.get("one")).spec.worker_configuration.revision == 1


async def test_what_is_asked_for_waits_while_its_workers_are_scaled(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[ResourceStore] = []

    @contextlib.asynccontextmanager
    async def noting(*values: Any, **more: Any) -> AsyncIterator[ResourceStore]:
        async with open_store(*values, **more) as store:
            opened.append(store)
            yield store

    monkeypatch.setattr("keelman.state.service.open_store", noting)
    async with failing(tmp_path) as (clients, single_failing):
        capacity = DedicatedCapacity(autoscale=Autoscale(min_workers=1, max_workers=2))
        await single_failing.ended(await single_failing.create("one", CONFIG, bootstrap, capacity=capacity))
        async with opened[0].write() as tx:  # as the autoscaler does; it ends when the test ends it
            uid = tx.snapshot.worker_cluster("one").uid
            facts = {CLUSTER_UID: uid, WORKERS: 1, FORMER_WORKERS: 1, REASON: "a test's"}
            scaling = begin(
                tx, OperationKind.SCALE, OperationTarget("dedicated_connector", "one"), (AWAIT_WORKERS,), facts
            )
        restarting = asyncio.ensure_future(single_failing.restart("one"))
        await eventually(lambda: opened[0].snapshot.operation(scaling.name).message, what="it is being scaled")
        assert not restarting.done()
        with pytest.raises(FailedPrecondition, match="has not ended"):
            async with opened[0].write() as tx:
                check_no_operation(tx, "dedicated_connector", "one")
        await clients.operations.CancelOperation(CancelOperationRequest(name=scaling.name))
        answer = await restarting
        assert answer.operation.name != scaling.name
        assert opened[0].snapshot.operation(scaling.name).has_ended
