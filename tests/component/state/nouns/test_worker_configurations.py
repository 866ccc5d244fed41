"""Worker configurations over real gRPC on both databases: kept byte by byte, in revisions, sealed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import origin_pb2
from keelman.api.connect.v1 import worker_configuration_service_pb2 as pb
from keelman.api.connect.v1.dedicated_connector_pb2 import WorkerConfigurationRef as Ref
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.event.v1 import event_pb2
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from keelman.state.secrets.sealed_rows import rekey_file
from keelman.workers.configurations import DEFAULT_PROPERTIES
from support.state.dedicated import Dedicated, file_source
from support.state.service import Clients, state_in_loop
from support.state.stores import open_store

pytestmark = pytest.mark.component
CANARY = "canary-0815"
BASE = b"".join(f"{key}={value}\n".encode() for key, value in DEFAULT_PROPERTIES.items())
CONTENT = BASE + b"# as it is \xff\r\n\n"


async def create(clients: Clients, name: str, content: bytes = CONTENT, **more: Any) -> WorkerConfiguration:
    request = pb.CreateWorkerConfigurationRequest(name=name, content=content, **more)
    with translated():
        return (await clients.configurations.CreateWorkerConfiguration(request)).worker_configuration


async def get(clients: Clients, name: str, *, with_secrets: bool = True) -> WorkerConfiguration:
    request = pb.GetWorkerConfigurationRequest(name=name, with_secrets=with_secrets)
    with translated():
        return (await clients.configurations.GetWorkerConfiguration(request)).worker_configuration


async def revise(clients: Clients, name: str, content: bytes, **more: Any) -> WorkerConfiguration:
    request = pb.CreateWorkerConfigurationRevisionRequest(name=name, content=content, **more)
    with translated():
        return (await clients.configurations.CreateWorkerConfigurationRevision(request)).worker_configuration


async def listed(clients: Clients, **fields: Any) -> list[str]:
    names, request = [], pb.ListWorkerConfigurationsRequest(page_size=2, **fields)
    while True:
        answer = await clients.configurations.ListWorkerConfigurations(request)
        assert not any(
            revision.content
            for worker_configuration in answer.worker_configurations
            for revision in worker_configuration.revisions
        )
        names += [worker_configuration.name for worker_configuration in answer.worker_configurations]
        request.page_token = answer.next_page_token
        if not request.page_token:
            return names


async def test_one_from_its_creation_to_its_end(clients: Clients) -> None:
    response = await create(clients, "orders", description="first", labels={"a": "b"}, request_id="r1")
    assert await create(clients, "orders", description="first", labels={"a": "b"}, request_id="r1") == response
    outcome = await get(clients, "orders")
    assert [(revision.revision, revision.content, revision.description) for revision in outcome.revisions] == [
        (1, CONTENT, "first")
    ]
    assert outcome.create_time == outcome.revisions[0].create_time
    with pytest.raises(AlreadyExists, match="a worker configuration named 'orders' exists already"):
        await create(clients, "orders")

    second = await revise(clients, "orders", BASE, description="second", etag=outcome.etag, request_id="r2")
    assert await revise(clients, "orders", BASE, description="second", etag=outcome.etag, request_id="r2") == second
    with pytest.raises(Conflict, match="etag"):
        await revise(clients, "orders", BASE, etag=outcome.etag)
    outcome = await get(clients, "orders")
    assert [(revision.revision, revision.content) for revision in outcome.revisions] == [(1, CONTENT), (2, BASE)]

    refused_fields = WorkerConfiguration(
        description="other", labels={"c": "d"}, name="no", origin=origin_pb2.Origin(api="x")
    )
    update = pb.UpdateWorkerConfigurationRequest(name="orders", worker_configuration=refused_fields)
    changed = (await clients.configurations.UpdateWorkerConfiguration(update)).worker_configuration
    assert (changed.name, changed.description, dict(changed.labels)) == ("orders", "other", {"c": "d"})
    assert not changed.HasField("origin")
    assert [revision.description for revision in changed.revisions] == ["first", "second"]
    update.update_mask.paths[:] = ["revisions"]
    with (
        pytest.raises(InvalidArgument, match="'revisions' is not legal: one of description, labels, extra"),
        translated(),
    ):
        await clients.configurations.UpdateWorkerConfiguration(update)

    gone = pb.DeleteWorkerConfigurationRequest(name="orders", request_id="r3")
    for _ in range(2):
        await clients.configurations.DeleteWorkerConfiguration(gone)
    with pytest.raises(NotFound, match="no worker configuration is named 'orders': none exists yet"):
        await get(clients, "orders")
    assert (await create(clients, "orders")).uid != response.uid


async def test_one_origin_has_one_and_lists_are_narrowed_by_origin_and_labels(clients: Clients) -> None:
    for name, scope, labels in (("a", "1", {"x": "y"}), ("b", "2", {}), ("c", "1", {"x": "z"})):
        origin = origin_pb2.Origin(api="other", scope=scope, key=f"key-{name}")
        await create(clients, name, origin=origin, labels=labels)
    await create(clients, "d")
    with pytest.raises(FailedPrecondition, match="'key-a' in scope '1' of 'other' is the origin of") as refused:
        await create(clients, "e", origin=origin_pb2.Origin(api="other", scope="1", key="key-a"))
    assert refused.value.reason == "ORIGIN_IN_USE"
    assert await listed(clients) == ["a", "b", "c", "d"]
    assert await listed(clients, origin_api="other") == ["a", "b", "c"]
    assert await listed(clients, origin_api="other", origin_scope="1") == ["a", "c"]
    assert await listed(clients, labels={"x": "z"}) == ["c"]
    assert await listed(clients, origin_api="ohara") == []


async def test_what_it_may_not_say_is_refused_and_nothing_is_kept(clients: Clients) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await create(clients, "w", b"value.converter=x.Y\nproducer.linger.ms=1\nrest.port=2\n")
    named = {violation.field for violation in refused.value.violations}
    assert named == {"key.converter", "producer.linger.ms", "rest.port"}
    for content in (b"k=\\u12", b"#" * (65 << 10)):
        with pytest.raises(InvalidArgument, match="content: "):
            await create(clients, "w", content)
    with pytest.raises(InvalidArgument, match="name: 'W' is not legal"):
        await create(clients, "W")
    with pytest.raises(InvalidArgument, match="description: "):
        await create(clients, "w", description="x" * 5000)
    assert await listed(clients) == []
    await create(clients, "w")
    with pytest.raises(InvalidArgument, match=r"key\.converter is missing"):
        await revise(clients, "w", b"")
    assert len((await get(clients, "w")).revisions) == 1


async def test_what_is_secret_in_it_is_nowhere_in_the_clear(tmp_path: Path) -> None:
    content = BASE + f"#db.password={CANARY}\nx.ssl.key.password={CANARY}\nvalue.converter.x=1\n".encode()
    async with state_in_loop(tmp_path) as (clients, _):
        answers = [await create(clients, "w", content), await revise(clients, "w", content)]
        answers.append(await get(clients, "w", with_secrets=False))
        assert CANARY not in str(answers) + "".join(
            r.content.decode() for configuration in answers for r in configuration.revisions
        )
        assert b"\nvalue.converter.x=1\n" in answers[-1].revisions[1].content
        assert (await get(clients, "w")).revisions[1].content == content
    files = [file.read_bytes() for file in (tmp_path / "state").glob("state.db*")]
    assert not any(CANARY.encode() in data for data in files)
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        events = [event_pb2.Event.FromString(p) for (p,) in database.execute("SELECT payload FROM outbox")]
    assert [len(event.worker_configuration.revisions) for event in events] == [1, 2]
    assert not any(r.content for event in events for r in event.worker_configuration.revisions)
    await rekey_file(str(tmp_path / "state" / "state.db"), tmp_path / "state" / "secrets.key")
    async with open_store(str(tmp_path / "state" / "state.db")) as store:
        (stored,) = store.snapshot.worker_configurations.values()
        assert set(stored.contents.values()) == {content}


async def test_one_that_a_connector_uses_reaches_its_workers_and_is_not_deleted(clients: Clients) -> None:
    await create(clients, "w", BASE + b"offset.flush.interval.ms=500\n")
    await revise(clients, "w", BASE + b"offset.flush.interval.ms=700\n")
    dedicated, config = Dedicated(clients.channel), file_source("/tmp/none", "t")
    for ref, named in ((Ref(name="none"), "'none'"), (Ref(name="w", revision=3), "no revision 3")):
        with pytest.raises(NotFound, match=named), translated():
            await dedicated.create("c", config, "127.0.0.1:1", worker_configuration=ref)
    await dedicated.create("c", config, "127.0.0.1:1", worker_configuration=Ref(name="w", revision=1))
    await dedicated.create("d", config, "127.0.0.1:1", worker_configuration=Ref(name="w"))
    for name, interval in (("c", "500"), ("d", "700")):
        properties = (await clients.worker_cluster(name)).spec.properties
        assert properties["offset.flush.interval.ms"] == interval
    assert list((await get(clients, "w")).users) == ["c", "d"]
    with pytest.raises(FailedPrecondition, match="'w' is used by c, d") as refused, translated():
        await clients.configurations.DeleteWorkerConfiguration(pb.DeleteWorkerConfigurationRequest(name="w"))
    assert refused.value.reason == "IN_USE"
