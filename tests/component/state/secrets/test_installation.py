"""Secrets over real gRPC on both databases: kept sealed, never shown, given only to the workers that may read them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.api.connect.v1.secret_pb2 import Secret
from keelman.api.event.v1 import event_pb2
from keelman.connect.config.providers import SECRETS_OF_OTHERS, SecretsProvider
from keelman.model.access.secret import MAX_BYTES
from keelman.model.errors import AlreadyExists, Conflict, Exhausted, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from keelman.state.secrets.sealed_rows import rekey_file
from support.eventually import eventually
from support.state.service import Agent, Clients, state_in_loop
from support.state.stores import open_store

pytestmark = pytest.mark.component
CANARY = "canary-0815"


async def create(clients: Clients, name: str, **more: Any) -> Secret:
    values = more.pop("values", {"user": "me", "password": CANARY})
    with translated():
        return (await clients.secrets.CreateSecret(pb.CreateSecretRequest(name=name, values=values, **more))).secret


async def update(clients: Clients, name: str, *mask: str, **more: Any) -> Secret:
    request = pb.UpdateSecretRequest(name=name, **more)
    request.update_mask.paths.extend(mask)
    with translated():
        return (await clients.secrets.UpdateSecret(request)).secret


async def get(clients: Clients, name: str) -> Secret:
    with translated():
        return (await clients.secrets.GetSecret(pb.GetSecretRequest(name=name))).secret


async def delete(clients: Clients, name: str) -> None:
    with translated():
        await clients.secrets.DeleteSecret(pb.DeleteSecretRequest(name=name))


def provider(java_class: str = SecretsProvider.java_class, names: str = "") -> dict[str, str]:
    fields = {"config.providers": "s", "config.providers.s.class": java_class}
    return fields | ({"config.providers.s.param.names": names} if names else {})


async def test_one_from_its_creation_to_its_end(clients: Clients) -> None:
    fields = await create(clients, "prod/db", description="of orders", labels={"a": "b"}, request_id="r")
    assert await create(clients, "prod/db", description="of orders", labels={"a": "b"}, request_id="r") == fields
    assert (fields.name, list(fields.keys), fields.description, dict(fields.labels)) == (
        "prod/db", ["password", "user"], "of orders", {"a": "b"},
    )  # fmt: skip
    with pytest.raises(AlreadyExists, match="a secret named 'prod/db' exists already"):
        await create(clients, "prod/db")
    changed = await update(clients, "prod/db", "values", values={"token": "x"}, etag=fields.etag)
    assert (list(changed.keys), changed.description) == (["token"], "of orders")
    assert await update(clients, "prod/db", "values", values={"token": "x"}) == changed, "nothing is new"
    with pytest.raises(Conflict, match="etag"):
        await update(clients, "prod/db", "labels", etag=fields.etag)
    await create(clients, "other", labels={"a": "c"})
    request = pb.ListSecretsRequest(labels={"a": "b"})
    assert [secret.name for secret in (await clients.secrets.ListSecrets(request)).secrets] == ["prod/db"]
    await delete(clients, "prod/db")
    with pytest.raises(NotFound, match="no secret is named 'prod/db': those there are: other"):
        await get(clients, "prod/db")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"name": ""}, "name: "), ({"name": "a b"}, "name: "), ({"name": "x" * 256}, "name: "),
        ({"values": {}}, "values: "),
        ({"values": {"a}": CANARY}}, "key"), ({"values": {"": CANARY}}, "key"), ({"values": {"a:b": CANARY}}, "key"),
        ({"values": {"k": CANARY * (MAX_BYTES // 10)}}, "values: "), ({"description": "x" * 5000}, "description: "),
        ({"labels": {"a b": ""}}, "labels"),
    ],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused_without_a_value(
    clients: Clients, more: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named) as refused:
        await create(clients, **{"name": "n"} | more)
    assert CANARY not in str(refused.value)
    assert not (await clients.secrets.ListSecrets(pb.ListSecretsRequest())).secrets


async def test_all_together_have_a_limit(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        for number in range(32):
            await create(clients, f"s{number}", values={"k": "x" * (MAX_BYTES - 1)})
        with pytest.raises(Exhausted, match="at most 2097152 are allowed"):
            await create(clients, "more")


async def test_workers_are_given_what_they_may_read_and_nobody_else_anything(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        await create(clients, "db")
        await create(clients, "prod/one", values={"k": f"{CANARY}-one"})
        async with Agent(clients, "n1") as agent:
            assert agent.secrets == [type(agent.secrets[0])()], "complete: none"
            await clients.create_external("default", "127.0.0.1:1")
            for name, properties in (
                ("all", provider()), ("some", provider(SECRETS_OF_OTHERS[0], "prod/*")), ("none", {}),
            ):  # fmt: skip
                await clients.create_workers(name, count=1, properties=properties)
                await clients.start_workers(name)

            def given() -> dict[str, list[str]]:
                return {worker.workload: list(worker.names) for worker in agent.secrets[-1].workers}

            await eventually(lambda: given() == {"worker/all/0": ["*"], "worker/some/0": ["prod/*"]})
            await eventually(lambda: "worker/none/0" in agent.workloads)
            values = {secret.name: dict(secret.values) for secret in agent.secrets[-1].secrets}
            assert values == {"db": {"user": "me", "password": CANARY}, "prod/one": {"k": f"{CANARY}-one"}}

            generation = agent.workloads["worker/all/0"].generation
            await update(clients, "db", "values", values={"password": f"{CANARY}-new"})
            await eventually(
                lambda: {"password": f"{CANARY}-new"} in [dict(o.values) for o in agent.secrets[-1].secrets]
            )
            await delete(clients, "prod/one")
            await eventually(lambda: [secret.name for secret in agent.secrets[-1].secrets] == ["db"])
            assert agent.workloads["worker/all/0"].generation == generation, "no worker restarts for it"
            texts = str(list(agent.workloads.values())) + str(await clients.workloads())
            texts += str(await get(clients, "db")) + str(await clients.worker_cluster("all"))
            assert CANARY not in texts
            await clients.stop_workers("all")
            await clients.delete_workers("all")
            await eventually(lambda: not agent.secrets[-1].secrets, what="the others may not read it")
    files = [file.read_bytes() for file in (tmp_path / "state").glob("state.db*")]
    assert not any(CANARY.encode() in data for data in files)
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        events = [event_pb2.Event.FromString(p) for (p,) in database.execute("SELECT payload FROM outbox")]
    assert CANARY not in str(events)
    assert {event.secret.name for event in events if event.HasField("secret")} == {"db", "prod/one"}
    await rekey_file(str(tmp_path / "state" / "state.db"), tmp_path / "state" / "secrets.key")
    async with open_store(str(tmp_path / "state" / "state.db")) as store:
        assert store.snapshot.named("secret", "db").values == {"password": f"{CANARY}-new"}


async def test_one_that_is_referred_to_is_not_deleted(clients: Clients) -> None:
    await create(clients, "db")
    await create(clients, "free")
    await clients.create_external("default", "127.0.0.1:1")
    properties = provider() | {"metrics.x": "${s:db:user}", "metrics.y": "${other:free:user}"}
    await clients.create_workers("w", count=1, properties=properties)
    assert list((await get(clients, "db")).users) == ["worker cluster w"]
    with pytest.raises(FailedPrecondition, match="'db' is referred to by worker cluster w") as refused:
        await delete(clients, "db")
    assert refused.value.reason == "IN_USE"
    await delete(clients, "free")
    await clients.delete_workers("w")
    await delete(clients, "db")
