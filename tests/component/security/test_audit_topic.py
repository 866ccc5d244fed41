"""The audit comes to its topic, also while a broker was away; and changes name the caller who made them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1.broker_cluster_service_pb2 import CreateBrokerClusterRequest
from keelman.api.connect.v1.secret_service_pb2 import CreateSecretRequest
from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.api.event.v1.event_pb2 import Event
from keelman.kafka.feed import AUDIT, consume, event_topic
from keelman.model.access.roles import token_digest
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.brokers.broker import started_broker
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component


async def test_events_of_gateways_and_their_actors_are_in_topics(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(f"[[token]]\nsha256 = '{token_digest('of-ada')}'\nname = 'ada'\nrole = 'admin'\n")
    async with (
        started_broker(tmp_path / "broker") as broker,
        running_system(tmp_path, {}, {"access-file": str(access)}) as system,
        channel(system.gateway.address, token="of-ada") as link,
    ):
        secret = CreateSecretRequest(name="db", values={"password": "planted-secret"})
        metadata = (("keelman-actor", "somebody"),)
        await stub_of(link, "connect", "secret").CreateSecret(secret, metadata=metadata)
        external = brokers.ExternalBrokers(bootstrap_servers=broker.bootstrap)
        spec = brokers.BrokerClusterSpec(external=external)
        await stub_of(link, "connect", "broker_cluster").CreateBrokerCluster(
            CreateBrokerClusterRequest(name="default", spec=spec)
        )
        audit, actors = dict[str, AuditEvent](), dict[str, str]()

        async def read() -> None:
            async for fact in consume(broker.bootstrap, [event_topic("secret")]):
                event = Event.FromString(fact.value or b"")
                actors[event.name] = event.actor

        async def read_audit() -> None:
            async for fact in consume(broker.bootstrap, [AUDIT]):
                audit[fact.key] = AuditEvent.FromString(fact.value or b"")

        reading = [asyncio.ensure_future(task) for task in (read(), read_audit())]
        try:
            await eventually(lambda: len(audit) >= 2 and bool(actors))
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
    assert [(key, e.caller, e.call, e.resource) for key, e in sorted(audit.items())] == [
        ("1", "ada", "SecretService/CreateSecret", "db"),
        ("2", "ada", "BrokerClusterService/CreateBrokerCluster", "default"),
    ]
    assert actors == {"db": "ada"}
    assert "planted-secret" not in str(audit)
