"""Plugins through a real gateway and a real state service on both databases.

Large files in bounded memory, uploads that are cut off, and the gateway's own refusals.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.gateway.system import System, running_system
from support.plugins.jar_files import jar_bytes
from support.servers.postgresql import BINARIES, started_postgresql
from support.state.uploads import WEATHER, download, jar, pieces, upload

pytestmark = [pytest.mark.component, pytest.mark.asyncio(loop_scope="module")]
LARGE = 64 << 20
GROWTH = 48 << 20
"""So much more memory, at most, a service has ever needed while a file of LARGE bytes came or went."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def system(request: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("system")
    if request.param == "sqlite":
        async with running_system(folder) as system:
            yield system
        return
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    with started_postgresql() as database:
        async with running_system(folder, database=database()) as system:
            yield system


@pytest_asyncio.fixture(loop_scope="module")
async def stub(system: System) -> AsyncIterator[PluginServiceStub]:
    async with channel(system.gateway.address) as to:
        yield PluginServiceStub(to)


def most_memory(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024


async def _answer(call: Any) -> Any:
    with translated():
        return await call


async def names(stub: PluginServiceStub) -> list[str]:
    return [f"{p.name}/{p.version}" for p in (await stub.ListPlugins(pb.ListPluginsRequest())).plugins]


@functools.cache
def large_jar() -> bytes:
    """Packing takes seconds, even of random bytes."""
    return jar_bytes([WEATHER], {"noise": random.Random(1).randbytes(LARGE)})


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_large_file_comes_and_goes_in_bounded_memory(system: System, stub: PluginServiceStub) -> None:
    await upload(stub, jar(1000), name="warm")  # modules imported at the first upload are no growth
    await download(stub, "warm")
    data = large_jar()
    services = [system.state.process, system.gateway.process]
    before = []
    for service in services:
        assert service is not None
        Path(f"/proc/{service.pid}/clear_refs").write_text("5")
        before.append(most_memory(service.pid))
    started_upload = await upload(stub, data, name="large", version="1")
    assert started_upload.size_bytes == len(data)
    digest, count = hashlib.sha256(), 0
    async for piece in stub.DownloadPlugin(pb.DownloadPluginRequest(name="large")):
        digest.update(piece.chunk)
        count += len(piece.chunk)
    assert (digest.hexdigest(), count) == (started_upload.sha256, len(data))
    growth = [most_memory(s.pid) - was for s, was in zip(services, before, strict=True) if s is not None]
    assert max(growth) < GROWTH, growth


async def test_uploads_that_end_early_leave_nothing(system: System, stub: PluginServiceStub) -> None:
    was, data = await names(stub), jar(3 << 20, salt="cut")
    call = stub.UploadPlugin()
    sent = [piece async for piece in pieces(data, name="cut")]
    for piece in sent[:-1]:
        await call.write(piece)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    for header, reason in (
        ({"sha256": "0" * 64}, "that of the bytes that came"),
        ({"size_bytes": 5}, "bytes that came"),
    ):
        with pytest.raises(InvalidArgument, match=reason), translated():
            await upload(stub, data, name="cut", **header)
    assert await names(stub) == was
    assert (await upload(stub, data, name="cut")).name == "cut"


async def test_a_state_service_that_dies_in_the_middle_is_told_and_the_upload_can_be_sent_again(
    system: System, stub: PluginServiceStub
) -> None:
    data = jar(3 << 20, salt="dies")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def halting() -> AsyncIterator[pb.UploadPluginRequest]:
        async for piece in pieces(data, name="dies", request_id="r-dies"):
            yield piece
            if piece.chunk:
                begun.set()
                await go_on.wait()

    call = asyncio.ensure_future(_answer(stub.UploadPlugin(halting())))
    await begun.wait()
    system.state.stop(9)
    go_on.set()
    with pytest.raises(Unavailable, match="the state service"):
        await call
    await system.state.start()

    async def again() -> bool:
        try:
            with translated():
                return (await upload(stub, data, name="dies", request_id="r-dies")).name == "dies"
        except Unavailable:
            return False

    await eventually(again)
    assert (await download(stub, "dies"))[1] == data


async def test_what_worker_clusters_use_is_not_deleted(system: System, stub: PluginServiceStub) -> None:
    old = await upload(stub, jar(10, salt="old"), name="used", version="1")
    await upload(stub, jar(10, salt="new"), name="used", version="2")
    async with channel(system.gateway.address) as to:
        external = ExternalBrokers(bootstrap_servers="127.0.0.1:1")
        await BrokerClusterServiceStub(to).CreateBrokerCluster(
            brokers.CreateBrokerClusterRequest(name="outside", spec=BrokerClusterSpec(external=external))
        )
        stubs = WorkerClusterServiceStub(to)
        spec = WorkerClusterSpec(broker_cluster="outside", count=1, plugins=[PluginRef(name="used", version="1")])
        worker_cluster = (
            await stubs.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name="user", spec=spec))
        ).worker_cluster
        assert worker_cluster.spec.plugins[0].sha256 == old.sha256
        get, delete = pb.GetPluginRequest(name="used", version="1"), pb.DeletePluginRequest(name="used", version="1")
        assert list((await stub.GetPlugin(get)).plugin.worker_clusters) == ["user"]
        with pytest.raises(FailedPrecondition, match="is used by worker clusters user") as caught:
            await stub.DeletePlugin(delete)
        assert (caught.value.reason, caught.value.metadata) == ("IN_USE", {"worker_clusters": "user"})
        await stub.DeletePlugin(pb.DeletePluginRequest(name="used", version="2"))
        await stubs.DeleteWorkerCluster(clusters.DeleteWorkerClusterRequest(name="user"))

        async def is_deleted() -> bool:
            try:
                return (await stub.DeletePlugin(delete)).plugin.uid == old.uid
            except FailedPrecondition:
                return False

        await eventually(is_deleted)


async def test_what_the_gateway_refuses_by_itself(system: System, stub: PluginServiceStub) -> None:
    for header, field in (({"name": "Acme"}, "header.name"), ({"version": "1/2"}, "header.version")):
        with pytest.raises(InvalidArgument, match=field), translated():
            await upload(stub, jar(10), **header)
    for call in (
        stub.GetPlugin(pb.GetPluginRequest()),
        stub.DeletePlugin(pb.DeletePluginRequest(name="acme")),
        stub.UpdatePlugin(pb.UpdatePluginRequest(name="acme", version="")),
        stub.ListPlugins(pb.ListPluginsRequest(page_size=-1)),
    ):
        with pytest.raises(InvalidArgument):
            await call
    await upload(stub, jar(10), name="same", version="1")
    with pytest.raises(AlreadyExists), translated():
        await upload(stub, jar(10, salt="other"), name="same", version="1")
