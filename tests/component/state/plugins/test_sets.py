"""Worker clusters that name plugins, over real gRPC: resolved at the write, checked, changed by mask, kept."""

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1 import worker_cluster_service_pb2 as wc
from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.worker_cluster_pb2 import (
    WORKER_ENGINE_KAFKA_CONNECT,
    WORKER_ENGINE_KEELMAN,
    WorkerClusterSpec,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from support.plugins.plugin_wheel import wheel
from support.state.service import Clients, state_in_loop
from support.state.uploads import jar, upload

pytestmark = pytest.mark.component


@pytest.fixture
async def clients(tmp_path, url):
    async with state_in_loop(tmp_path, database=url) as (state, _):
        await state.create_external("ext", "localhost:9")
        yield state


def spec(**fields) -> WorkerClusterSpec:
    return WorkerClusterSpec(broker_cluster="ext", count=1, **fields)


async def create(clients: Clients, name: str, **fields):
    request = wc.CreateWorkerClusterRequest(name=name, spec=spec(**fields))
    return (await clients.clusters.CreateWorkerCluster(request)).worker_cluster


async def update(clients: Clients, name: str, *paths: str, **fields):
    request = wc.UpdateWorkerClusterRequest(name=name, spec=spec(**fields), update_mask=FieldMask(paths=paths))
    return (await clients.clusters.UpdateWorkerCluster(request)).worker_cluster


def refs(*names: str) -> list[PluginRef]:
    return [PluginRef(name=name, version=version) for name, _, version in (text.partition(":") for text in names)]


async def test_the_newest_is_meant_where_no_version_is_named_and_stays_that(clients: Clients) -> None:
    first = await upload(clients.plugins, jar(salt="1"), file_name="acme-1.9.jar")
    second = await upload(clients.plugins, jar(salt="2"), file_name="acme-1.10.jar")
    driver = await upload(clients.plugins, jar(salt="3"), file_name="driver-2.jar")
    last_update = await create(clients, "a", plugins=refs("acme"), libraries=refs("driver"))
    assert list(last_update.spec.plugins) == [PluginRef(name="acme", version="1.10", sha256=second.sha256)]
    assert list(last_update.spec.libraries) == [PluginRef(name="driver", version="2", sha256=driver.sha256)]
    assert last_update.spec.engine == WORKER_ENGINE_KEELMAN
    await upload(clients.plugins, jar(salt="4"), file_name="acme-2.jar")
    last_update = await update(clients, "a", "description", description="weather")
    assert last_update.spec.plugins[0].version == "1.10"
    last_update = await update(clients, "a", "plugins", plugins=[PluginRef(name="acme", sha256=first.sha256.upper())])
    assert last_update.spec.plugins[0] == PluginRef(name="acme", version="1.9", sha256=first.sha256)
    assert [ref.name for ref in last_update.spec.libraries] == ["driver"]
    shown = await clients.plugins.GetPlugin(pb.GetPluginRequest(name="acme", version="1.9"))
    assert list(shown.plugin.worker_clusters) == ["a"]
    with pytest.raises(FailedPrecondition, match="a"):
        await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.9"))
    await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.10"))
    last_update = await update(clients, "a", "plugins", "libraries")
    assert not last_update.spec.plugins
    await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.9"))


async def test_what_there_is_not_is_named_with_what_there_is(clients: Clients, tmp_path) -> None:
    with pytest.raises(InvalidArgument, match=r"spec.plugins\[0\].name: 'acme' .*none exists yet: upload one first"):
        await create(clients, "a", plugins=refs("acme"))
    started_upload = await upload(clients.plugins, jar(salt="1"), file_name="acme-1.9.jar")
    file = wheel(tmp_path)
    await upload(clients.plugins, file.read_bytes(), file_name=file.name, name="snake", version="1")
    with pytest.raises(InvalidArgument, match=r"spec.plugins\[1\].name: 'acne' .*\(acme, snake\)"):
        await create(clients, "a", plugins=refs("acme", "acne"))
    with pytest.raises(InvalidArgument, match=r"spec.libraries\[0\].version: '2' .*of plugin acme \(1.9\)"):
        await create(clients, "a", libraries=refs("acme:2"))
    with pytest.raises(InvalidArgument, match=rf"spec.plugins\[0\].sha256: 'ab' .*1.9 has {started_upload.sha256}"):
        await create(clients, "a", plugins=[PluginRef(name="acme", sha256="ab")])
    with pytest.raises(InvalidArgument, match=r"spec.plugins\[1\]: 'acme 1.9' .*spec.plugins\[0\] is the same file"):
        await create(clients, "a", plugins=refs("acme", "acme:1.9"))
    with pytest.raises(InvalidArgument, match=r"spec.libraries\[0\]: 'acme 1.9' .*spec.plugins\[0\] is the same file"):
        await create(clients, "a", plugins=refs("acme"), libraries=refs("acme"))
    with pytest.raises(InvalidArgument, match=r"spec.libraries\[0\].name: 'snake' .*a jar, or an archive of jars"):
        await create(clients, "a", libraries=refs("snake"))
    with pytest.raises(InvalidArgument, match=r"spec.engine: 7 .*, WORKER_ENGINE_KEELMAN, WORKER_ENGINE_KAFKA_CONNECT"):
        await create(clients, "a", engine=7)


async def test_the_engine_is_changed_only_while_the_cluster_rests(clients: Clients) -> None:
    await create(clients, "a")
    last_update = await update(clients, "a", "engine", engine=WORKER_ENGINE_KAFKA_CONNECT)
    assert last_update.spec.engine == WORKER_ENGINE_KAFKA_CONNECT
    await clients.clusters.StartWorkerCluster(wc.StartWorkerClusterRequest(name="a"))
    with pytest.raises(FailedPrecondition, match=r"spec.engine: KAFKA_CONNECT cannot become KEELMAN .*stop it first"):
        await update(clients, "a", "engine", engine=WORKER_ENGINE_KEELMAN)
