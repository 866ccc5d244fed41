"""Two real brokers that speak TLS, to each other, to their controller and to clients.

Their certificates are renewed while they run.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.broker.tls import Stores
from keelman.kafka.probe import ask_broker
from keelman.kafka.security.tls_sasl import for_librdkafka
from keelman.rpc.identity import Identity, IdentityKind
from keelman.runtime.home import write_file
from keelman.runtime.tls.certificates import certificate_request, made_key
from keelman.state.trust.authority import Authority
from support.brokers.broker import BrokerProcess
from support.eventually import eventually

pytestmark = pytest.mark.component

HOST, TOPIC = "127.0.0.1", "orders"
CLUSTER_ID = "k3lmAnTestClusterOf3-Q"
LIFE = timedelta(days=1)


def issue(authority: Authority, keystore: Path, kind: IdentityKind, key: bytes, *more: str) -> Path:
    """Writes a keystore with a fresh certificate for a key, which names `more` hosts."""
    request = certificate_request(key)
    chain = authority.sign(request, Identity(kind, keystore.stem), (HOST, *more), datetime.now(UTC), LIFE)
    write_file(keystore, key + chain.encode())
    return keystore


def client_of(keystore: Path | None, truststore: Path) -> dict[str, str]:
    trusting = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(truststore)}
    if keystore is None:
        return trusting
    return trusting | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keystore)}


def shown(port: int, keystore: Path, truststore: Path) -> bytes:
    """The certificate of a listener, in DER, checked as a client does that shows its own."""
    context = ssl.create_default_context(cafile=str(truststore))
    context.load_cert_chain(keystore)
    plain = socket.create_connection((HOST, port), timeout=30)
    with plain, context.wrap_socket(plain, server_hostname=HOST) as secured:
        return secured.getpeercert(binary_form=True) or b""


def brokers_seen(client: Mapping[str, str], bootstrap: str, seconds: float = 300.0) -> int:
    """The number of brokers that a client sees. Raises KafkaException."""
    admin = AdminClient({**for_librdkafka(client), "bootstrap.servers": bootstrap, "log_level": 0})
    return len(admin.list_topics(timeout=seconds).brokers)


async def test_all_connections_are_secured_and_certificates_renewed_while_they_run(tmp_path: Path) -> None:
    authority, keys = Authority.made(datetime.now(UTC)), [made_key() for _ in range(2)]
    write_file(truststore := tmp_path / "ca.pem", authority.pem.encode())
    stores = [
        issue(authority, tmp_path / f"n{n}.pem", IdentityKind.BROKER, key, "old.example.org")
        for n, key in enumerate(keys)
    ]
    own = issue(authority, tmp_path / "me.pem", IdentityKind.CLIENT, made_key())
    brokers = [BrokerProcess(tmp_path / f"broker{n}") for n in range(2)]
    for number, (broker, keystore) in enumerate(zip(brokers, stores, strict=True)):
        broker.flags = (
            f"--node-id={number}", f"--cluster-id={CLUSTER_ID}", "--replicas=2", "--heap-mb=256",
            f"--voters=0@{HOST}:{brokers[0].controller_port}", *([] if number == 0 else ["--controller=false"]),
            f"--tls-keystore={keystore}", f"--tls-truststore={truststore}", "--client-certificates=true",
        )  # fmt: skip
    probing = Stores(own, truststore, client_certificates=True).client
    client = client_of(own, truststore)
    try:
        for broker in brokers:
            await broker.spawn()
        for number, broker in enumerate(brokers):

            async def serves(port: int = broker.port, number: int = number) -> bool:
                assert all(broker.running for broker in brokers), [broker.output[-3000:] for broker in brokers]
                answer = await ask_broker(HOST, port, probing)
                return answer is not None and answer.serves(number)

            await eventually(serves, what=f"broker {number} answers")
        bootstrap = ",".join(broker.bootstrap for broker in brokers)

        async def both_seen() -> bool:
            return await asyncio.to_thread(brokers_seen, client, bootstrap) == 2

        await eventually(both_seen, what="both brokers are in the cluster")
        rd = {**for_librdkafka(client), "bootstrap.servers": bootstrap}
        admin = AdminClient(rd)
        admin.create_topics([NewTopic(TOPIC, 1, 2)])[TOPIC].result(300)
        producer = Producer({**rd, "acks": "all"})
        producer.produce(TOPIC, b"one")
        assert producer.flush(300) == 0, "both replicas have it: brokers trust each other"
        assert await ask_broker(HOST, brokers[0].port) is None, "plain text is not answered"
        with pytest.raises(KafkaException):
            brokers_seen(client_of(None, truststore), bootstrap, 10)

        javas = [psutil.Process(broker.pid).children() for broker in brokers]
        listeners = [(brokers[0].port, 0), (brokers[0].controller_port, 0), (brokers[1].port, 1)]
        before = await eventually(lambda: [shown(port, own, truststore) for port, _ in listeners], what="all show one")
        # The new certificates name fewer hosts; the second time nothing in the cluster's own configuration changes.
        for _ in range(2):
            for keystore, key in zip(stores, keys, strict=True):
                issue(authority, keystore, IdentityKind.BROKER, key)

            def renewed(old: list[bytes] = before) -> list[bytes] | None:
                showns = [shown(port, own, truststore) for port, _ in listeners]
                return showns if all(a != b for a, b in zip(showns, old, strict=True)) else None

            before = await eventually(renewed, every=0.5, what="all listeners show the new certificates")
        assert [psutil.Process(broker.pid).children() for broker in brokers] == javas
        await eventually(both_seen, what="a new client gets to know both")
        producer.produce(TOPIC, b"two")
        assert producer.flush(300) == 0
        consumer = Consumer({**rd, "group.id": "readers"})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert [message.value() for message in consumer.consume(2, 60)] == [b"one", b"two"]
        consumer.close()
        await eventually(lambda: "certificates_read" in brokers[1].output, what="the broker's log tells of it")
        assert await brokers[0].end() == 0
        await brokers[0].spawn()  # its controller alone fences its old self first, with TLS too
        await eventually(lambda: serves(brokers[0].port, 0), what="it came back")
    finally:
        for broker in reversed(brokers):
            await broker.end()
