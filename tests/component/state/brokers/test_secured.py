"""An external cluster behind SASL_SSL: it is queried, its events and reports flow, and a real worker reaches it."""

import asyncio
import os
from pathlib import Path

import pytest

from keelman.agent.workloads.commands import command_table
from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1 import secret_service_pb2 as secrets_pb
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED, OPERATION_STEP_STATE_DONE
from keelman.api.event.v1 import event_pb2
from keelman.kafka.feed import WORKER_REPORTS, consume, event_topic
from keelman.runtime.home import Home, write_file
from support.brokers.secure_broker import SECRET, USER, SecureBroker
from support.certificates import PASSWORD
from support.eventually import eventually
from support.state.dedicated import Dedicated, file_source
from support.state.service import Agent, Clients, free_range, state_in_loop
from support.state.topics import ABSENT, Topics

pytestmark = pytest.mark.component
STATE = brokers.ClusterState
JAAS = "sasl.jaas.config"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def client_properties(broker: SecureBroker, folder: Path, secret: str = SECRET) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{secret}";',
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(broker.authority.write_trust(folder / f"trust-{len(secret)}.p12")),
        "ssl.truststore.password": PASSWORD,
        "client.dns.lookup": "use_all_dns_ips",
        "max.poll.records": "123",
    }


async def create(clients: Clients, name: str, broker: SecureBroker, properties: dict[str, str]) -> None:
    external = brokers.ExternalBrokers(bootstrap_servers=broker.at("SASLTLS"), client_properties=properties)
    spec = brokers.BrokerClusterSpec(external=external)
    await clients.brokers.CreateBrokerCluster(brokers_pb.CreateBrokerClusterRequest(name=name, spec=spec))


async def in_state(clients: Clients, name: str, expected: int) -> brokers.BrokerCluster:
    async def look() -> brokers.BrokerCluster | None:
        broker_cluster = await clients.broker_cluster(name)
        return broker_cluster if broker_cluster.status.state == expected else None

    return await eventually(look, what=f"{name} is {STATE.Name(expected)}")


async def first(bootstrap: str, topic: str, key: str) -> bytes:
    """The first fact of this key, read from the listener without a login."""
    async with asyncio.timeout(300):
        async for fact in consume(bootstrap, [topic]):
            if fact.key == key and fact.value is not None:
                return fact.value
    raise AssertionError


async def test_client_properties_reach_the_probe_events_workers_and_reports(
    broker: SecureBroker, tmp_path: Path
) -> None:
    properties = client_properties(broker, tmp_path)
    ports = free_range(2)
    async with state_in_loop(tmp_path / "state", worker_ports=ports) as (clients, _), Agent(clients, "n1") as agent:
        await create(clients, "default", broker, properties)
        running = await in_state(clients, "default", STATE.CLUSTER_STATE_RUNNING)
        assert running.status.kafka_cluster_id == CLUSTER_ID
        event = event_pb2.Event.FromString(
            await first(broker.at("PLAINTEXT"), event_topic("broker_cluster"), "default")
        )
        assert SECRET.encode() not in event.SerializeToString()

        await clients.create_workers("demo", count=1)
        await clients.start_workers("demo")
        await eventually(lambda: "worker/demo/0" in agent.workloads)
        workload = agent.workloads["worker/demo/0"]
        written_properties = dict(workload.spec.worker.properties)
        security = {k: v for k, v in properties.items() if k.startswith(("security.", "sasl.", "ssl."))}
        assert written_properties.items() >= security.items()
        assert not [k for k in written_properties if k.startswith(("producer.s", "consumer.s", "admin.s"))], (
            "never to other brokers"
        )
        assert written_properties["consumer.max.poll.records"] == "123"
        assert "max.poll.records" not in written_properties
        assert (
            written_properties["client.dns.lookup"]
            == written_properties["producer.client.dns.lookup"]
            == "use_all_dns_ips"
        )
        assert dict(workload.spec.worker.reports_client_properties) == properties
        assert dict(agent.workloads["spark/n1"].spec.spark.reports_client_properties) == properties

        prepared = command_table()["worker"](workload, Home(tmp_path))
        folder = Home(tmp_path).workload("worker/demo/0")
        folder.mkdir(parents=True)
        for name, text in prepared.files.items():
            write_file(folder / name, text.encode())
            assert (folder / name).stat().st_mode & 0o077 == 0
        assert SECRET not in " ".join(prepared.command)
        with (folder / "log").open("wb") as log:
            worker = await asyncio.create_subprocess_exec(
                *prepared.command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ)
            )
        try:
            key = f"127.0.0.1:{workload.spec.worker.port}"
            assert await first(broker.at("PLAINTEXT"), WORKER_REPORTS, key), (folder / "log").read_text()
        finally:
            worker.terminate()
            async with asyncio.timeout(300):
                await worker.wait()


async def test_brokers_that_refuse_keelman_say_so(broker: SecureBroker, tmp_path: Path) -> None:
    async with state_in_loop(tmp_path / "state") as (clients, _):
        await create(clients, "closed", broker, client_properties(broker, tmp_path, "wrong"))
        refused = await in_state(clients, "closed", STATE.CLUSTER_STATE_DEGRADED)
        assert "authentication failed" in refused.status.message
        assert "wrong" not in refused.status.message


async def test_a_changed_credential_profile_reaches_who_asks_and_running_workers(
    broker: SecureBroker, tmp_path: Path
) -> None:
    right, wrong = client_properties(broker, tmp_path), client_properties(broker, tmp_path, "wrong")[JAAS]
    shared = {key: value for key, value in right.items() if key != JAAS}
    async with state_in_loop(tmp_path / "state", worker_ports=free_range(2)) as (clients, _), Agent(clients, "n1") as a:
        await clients.secrets.CreateSecret(secrets_pb.CreateSecretRequest(name="kafka", values={JAAS: wrong}))
        external = brokers.ExternalBrokers(
            bootstrap_servers=broker.at("SASLTLS"), client_properties=shared, credential_profile="kafka"
        )
        spec = brokers.BrokerClusterSpec(external=external)
        await clients.brokers.CreateBrokerCluster(brokers_pb.CreateBrokerClusterRequest(name="default", spec=spec))
        refused = await in_state(clients, "default", STATE.CLUSTER_STATE_DEGRADED)
        assert "authentication failed" in refused.status.message
        await clients.create_workers("demo", count=1)
        await clients.start_workers("demo")

        def given(name: str = "worker/demo/0") -> str:
            workload = a.workloads.get(name)
            return "" if workload is None else workload.spec.worker.properties[JAAS]

        await eventually(lambda: given() == wrong, what="the worker has the wrong login")
        await clients.secrets.UpdateSecret(secrets_pb.UpdateSecretRequest(name="kafka", values={JAAS: right[JAAS]}))
        await in_state(clients, "default", STATE.CLUSTER_STATE_RUNNING)
        await eventually(lambda: given() == right[JAAS], what="the worker gets the other password")


async def test_topics_are_brought_about_behind_sasl_ssl(broker: SecureBroker, tmp_path: Path) -> None:
    async with state_in_loop(tmp_path / "state") as (clients, _):
        await create(clients, "default", broker, client_properties(broker, tmp_path))
        await create(clients, "refused", broker, client_properties(broker, tmp_path, secret="wrong"))
        topics = Topics(clients, "default")
        await topics.create("secured", partitions=2)
        operation = await topics.apply("secured")
        assert operation.state == OPERATION_STATE_SUCCEEDED, operation
        assert len((await topics.get("secured")).status.brokers.partitions) == 2
        assert (await topics.apply("secured", ABSENT)).state == OPERATION_STATE_SUCCEEDED
        refused = Topics(clients, "refused")
        await refused.create("kept-out")
        operation = await refused.apply("kept-out")
        assert operation.error.code == "UNAUTHENTICATED", operation
        assert "authentication failed" in operation.error.message


async def test_a_dedicated_connector_that_brokers_refuse_says_so_at_once(broker: SecureBroker, tmp_path: Path) -> None:
    async with state_in_loop(tmp_path / "state", worker_ports=free_range(4)) as (clients, _), Agent(clients, "n1"):
        dedicated = Dedicated(clients.channel)
        wrong, right = (
            brokers.ExternalBrokers(
                bootstrap_servers=broker.at("SASLTLS"), client_properties=client_properties(broker, tmp_path, secret)
            )
            for secret in ("wrong", SECRET)
        )
        answer = await dedicated.create("refused", file_source("/nowhere", "t"), external=wrong)
        operation = await dedicated.ended(answer, seconds=300)
        assert (operation.error.reason, operation.steps[0].attempts) == ("BROKERS_REFUSE", 1), operation
        status = (await dedicated.get("refused")).status
        assert status.code == "ClusterError.AuthenticationFailed"
        assert 'password="wrong"' not in str(answer)
        answer = await dedicated.create("accepted", file_source("/nowhere", "t"), external=right)

        async def reached() -> bool:
            return (await dedicated.operation(answer.operation.name)).steps[0].state == OPERATION_STEP_STATE_DONE

        await eventually(reached, what="its brokers are reached")
