"""Credential profiles of external broker clusters: secrets that are stored once, and changed for all their users."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.state.clusters import broker_clusters
from keelman.state.nouns import secret
from keelman.state.nouns.broker_cluster import broker_cluster_message
from keelman.state.resources.store import ResourceStore
from support.state.stores import open_store

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SPEC = ExternalBrokers("k:9093", {"security.protocol": "SASL_SSL", "client.rack": "a"}, credential_profile="prod/kafka")


def values(password: str) -> dict[str, str]:
    return {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} required username="u" password="{password}";'}


async def put(store: ResourceStore, fields: dict[str, str], name: str = "prod/kafka") -> None:
    async with store.write() as tx:
        if name in tx.snapshot.resources("secret"):
            request = pb.UpdateSecretRequest(name=name, values=fields)
            request.update_mask.paths.append("values")
            secret.update(tx, request)
        else:
            secret.create(tx, pb.CreateSecretRequest(name=name, values=fields))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ResourceStore]:
    async with open_store(str(tmp_path / "state.db")) as opened:
        await put(opened, values("first-one"))
        async with opened.write() as tx:
            broker_clusters.create(tx, "b", SPEC)
        yield opened


def spec(store: ResourceStore) -> ExternalBrokers:
    actual_spec = store.snapshot.broker_cluster("b").spec
    assert isinstance(actual_spec, ExternalBrokers)
    return actual_spec


async def test_clients_get_what_the_secret_says_and_nobody_is_shown_it(store: ResourceStore, tmp_path: Path) -> None:
    assert spec(store).connection == SPEC.client_properties | values("first-one")
    shown = broker_cluster_message(store.snapshot.broker_cluster("b"))
    assert shown.spec.external.credential_profile == "prod/kafka"
    assert dict(shown.spec.external.client_properties) == SPEC.client_properties
    assert "first-one" not in str(shown)
    for file in tmp_path.glob("state.db*"):
        assert b"first-one" not in file.read_bytes()


async def test_a_changed_secret_reaches_all_that_use_the_brokers(store: ResourceStore) -> None:
    before = store.snapshot.broker_cluster("b")
    await put(store, values("second"))
    after = store.snapshot.broker_cluster("b")
    assert spec(store).connection == SPEC.client_properties | values("second")
    assert after.generation == before.generation + 1
    await put(store, values("second"))
    assert store.snapshot.broker_cluster("b") == after, "nothing changed"
    async with store.write() as tx:
        changed = broker_clusters.update(
            tx, "b", "", lambda old: ExternalBrokers("k:9094", credential_profile="prod/kafka")
        )
        assert changed.spec.connection == values("second")
        changed = broker_clusters.update(tx, "b", "", lambda old: ExternalBrokers("k:9094"))
        assert not changed.spec.connection


async def test_what_cannot_be_is_refused_whichever_is_written(store: ResourceStore) -> None:
    async def refused(profile: str) -> str:
        spec = ExternalBrokers("k:1", {"security.protocol": "SASL_SSL"}, credential_profile=profile)
        with pytest.raises(InvalidArgument) as error:
            async with store.write() as tx:
                broker_clusters.create(tx, "c", spec)
        return error.value.message

    assert "'none' is not legal: an existing secret (prod/kafka)" in await refused("none")
    await put(store, {"password": "x"}, "other")
    assert "begin with security., ssl., sasl.; it has 'password'" in await refused("other")
    await put(store, {"sasl.mechanism": "KERBEROS-5"}, "other")
    assert (await refused("other")).startswith(
        "spec.external.credential_profile: secret 'other', key sasl.mechanism: '[hidden]' is not"
    )
    for value, field, message in (
        ({"sasl.mechanism": "KERBEROS-5"}, "values.sasl.mechanism", "values.sasl.mechanism: '[hidden]' is not"),
        ({"password": "x"}, "values.password", "values.password: 'password' is not legal: begins with security., ssl."),
        (
            {"ssl.protocol": "TLS"},
            "values.sasl.mechanism",
            "values.sasl.mechanism: 'GSSAPI' (Kerberos), Java's default",
        ),
    ):
        with pytest.raises(InvalidArgument) as error:
            await put(store, value)
        assert {violation.field for violation in error.value.violations} == {field}
        assert error.value.message.startswith(message)
        assert "credential profile of broker cluster b" in error.value.message
    assert spec(store).connection == SPEC.client_properties | values("first-one")
    with pytest.raises(FailedPrecondition, match="is referred to by broker cluster b"):
        async with store.write() as tx:
            secret.delete(tx, pb.DeleteSecretRequest(name="prod/kafka"))
