"""Managed brokers with TLS on a host that joined: a worker copies by them, also once their certificate is renewed."""

import asyncio
import contextlib
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka import Consumer, TopicPartition

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.kafka.feed import WORKER_REPORTS
from keelman.kafka.security.tls_sasl import for_librdkafka
from keelman.rpc.membership import MemberFolder
from keelman.runtime.tls.certificates import certificate_facts
from support.agent.nothing_left import nothing_left
from support.eventually import eventually
from support.state.definitions import FILE_SOURCE, Definitions
from support.state.service import Clients, free_range
from support.state.trust import installation

pytestmark = pytest.mark.component
LIFE_HOURS = 120 / 3600
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
MUTUAL, OPEN = brokers.BrokerTls.BROKER_TLS_MUTUAL, brokers.BrokerAccess.BROKER_ACCESS_OPEN


@pytest.mark.slow
async def test_a_worker_copies_by_brokers_with_tls_whose_certificate_is_renewed(tmp_path: Path) -> None:
    lines, topic = tmp_path / "lines.txt", "lines"
    lines.write_text("one\n")
    ranges = {"broker_ports": free_range(4), "worker_ports": free_range(2), "spark_ports": free_range(2)}
    async with installation(tmp_path, certificate_hours=LIFE_HOURS, **ranges) as installed:
        await installed.join("n1")
        home = installed.homes["n1"]
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(nothing_left(home))
            agent = await stack.enter_async_context(installed.agent("n1"))
            await installed.online("n1")
            clients = Clients(installed.to_gateway)
            spec = brokers.BrokerClusterSpec(
                managed=brokers.ManagedBrokers(nodes=["n1"], heap_mb=256, tls=MUTUAL, access=OPEN)
            )
            request = brokers_pb.CreateBrokerClusterRequest(name="default", spec=spec)
            await clients.brokers.CreateBrokerCluster(request)
            await clients.create_workers("demo", count=1)
            await clients.start_workers("demo")

            async def running() -> bool:
                assert not agent.done()
                worker_cluster = await clients.worker_cluster("demo")
                return worker_cluster.status.ready_workers == 1

            await eventually(running, what="the worker runs")
            definitions = Definitions(clients, "demo")
            config = {"connector.class": FILE_SOURCE, "file": str(lines), "topic": topic, "tasks.max": "1"}
            await definitions.create("from-file", config | dict.fromkeys(("key.converter", "value.converter"), STRINGS))
            assert (await definitions.apply("from-file")).state == OPERATION_STATE_SUCCEEDED

            with (home.workload("worker/demo/0") / "worker.properties").open() as file:
                fields = javaproperties.load(file)
            shown = (await clients.broker_cluster("default")).status
            assert shown.client_properties["ssl.keystore.key"] == "[hidden]"
            assert shown.client_properties["ssl.truststore.certificates"] == fields["ssl.truststore.certificates"]
            client = {**for_librdkafka(fields), "bootstrap.servers": shown.bootstrap_servers}

            async def read(count: int, name: str = topic) -> list[bytes | None]:
                consumer = Consumer({**client, "group.id": "reader"})
                consumer.assign([TopicPartition(name, 0, 0)])
                messages = await asyncio.to_thread(consumer.consume, count, 60)
                await asyncio.to_thread(consumer.close)
                return [message.value() for message in messages]

            assert await read(1) == [b"one"]
            assert await read(1, WORKER_REPORTS), "its reports go there, too"

            folder, log = MemberFolder(home.member("broker")), home.workload("broker/default/0") / "log"
            first = certificate_facts(folder.certificate.read_bytes())
            pids = {w.name: w.status.pid for w in (await clients.workloads()).values()}

            def renewed() -> bool:
                assert not agent.done()
                newest = certificate_facts(folder.certificate.read_bytes())
                return newest.end > first.end and "certificates_read" in log.read_text()

            await eventually(renewed, every=0.5, what="the broker has a renewed certificate")
            with lines.open("a") as file:
                file.write("two\n")
            assert await read(2) == [b"one", b"two"]
            assert {w.name: w.status.pid for w in (await clients.workloads()).values()} == pids
