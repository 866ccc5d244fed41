"""Runs a real broker with a listener of every kind, and ACLs.

The listeners: TLS with and without client certificates, and each SASL mechanism.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from ssl import get_server_certificate

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from cryptography.hazmat.primitives.serialization import Encoding

from keelman.broker.jvm import class_path
from keelman.broker.prepare import prepare
from keelman.broker.properties import written
from keelman.kafka.security.oauth import URL_KEY
from keelman.runtime.processes.ports import free_ports
from support.brokers.broker import answers
from support.brokers.cluster_parts import until
from support.certificates import PASSWORD, Authority, Issued
from support.program import Program
from support.proxy import Proxy

USER, SECRET = "alice", "it's; a secret"
START_SECONDS, ANSWER_SECONDS = 300.0, 300.0
NODE, LOOKS = "1", 6
SESSION_SECONDS = 4.0
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
    "SHORTTLS": "SASL_SSL",
    "OAUTH": "SASL_PLAINTEXT",
}


@dataclass(frozen=True, slots=True)
class SecureBroker:
    """The ports of its listeners.

    Its certificate is for 127.0.0.1, the certificate of MUTUAL for another host, both from `authority`. On SHORT and
    SHORTTLS clients must log in again every SESSION_SECONDS.
    """

    ports: dict[str, int]
    authority: Authority
    home: Path
    program: Program

    def at(self, listener: str) -> str:
        """Bootstrap servers of a listener.

        PLAINTEXT, TLS, MUTUAL, SASL (PLAIN, SCRAM), SASLTLS, SHORT and SHORTTLS (the same), OAUTH.
        """
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def trust(self) -> Path:
        """The truststore of its clients."""
        return self.home / "broker-trust.p12"

    async def show(self, listener: str, issued: Issued) -> None:
        """Shows this certificate of "broker" to clients of the listener; returns once it does."""
        file = issued.write_pkcs12(self.home / f"{issued.certificate.serial_number}.p12")
        key = f"listener.name.{listener.lower()}.ssl.keystore.location"
        entry = ConfigEntry(key, str(file), incremental_operation=AlterConfigOpType.SET)
        config_resource = ConfigResource(ResourceType.BROKER, NODE, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self.at("PLAINTEXT")})
        for done in admin.incremental_alter_configs([config_resource]).values():
            await asyncio.to_thread(done.result, ANSWER_SECONDS)
        pem = issued.certificate.public_bytes(Encoding.PEM).decode().strip()

        async def shown() -> bool:  # each of the broker's threads loads it by itself
            at = ("127.0.0.1", self.ports[listener])
            get_server_certificates = [await asyncio.to_thread(get_server_certificate, at) for _ in range(LOOKS)]
            return all(get_server_certificate.strip() == pem for get_server_certificate in get_server_certificates)

        await until(shown, ANSWER_SECONDS, "the broker shows the certificate")

    def with_tokens_of(self, url: str) -> dict[str, str]:
        """The properties of a client of OAUTH, which gets its tokens at this URL."""
        return {
            "bootstrap.servers": self.at("OAUTH"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{_OAUTH} required clientId="me" clientSecret="secret";',
            URL_KEY: url,
        }


@contextlib.asynccontextmanager
async def secure_broker(
    home: Path, *, closed: bool = False, proxies: Mapping[str, Proxy] | None = None
) -> AsyncIterator[SecureBroker]:
    """Runs a secure broker in `home`.

    USER with SECRET may log in with PLAIN and SCRAM; OAUTHBEARER takes unsecured tokens. Clients of a listener of
    `proxies` get the proxy's address; the listener is on the port to which the proxy leads.

    Clients without a login may do everything, and all others may use every resource without an ACL, unless it is
    `closed`.
    """
    new_prepare = await prepare()
    home.mkdir(parents=True, exist_ok=True)
    *ports, controller = free_ports(len(_LISTENERS) + 1)
    program = Program("the secure broker", home / "output.log")
    proxies = proxies or {}
    chosen = {
        name: proxies[name].to_port if name in proxies else port for name, port in zip(_LISTENERS, ports, strict=True)
    }
    broker = SecureBroker(chosen, Authority(), home, program)
    file = home / "server.properties"
    properties = _properties(broker, home, controller)
    told = {name: broker.at(name) for name in _LISTENERS} | {name: proxy.address for name, proxy in proxies.items()}
    properties["advertised.listeners"] = ",".join(f"{name}://{address}" for name, address in told.items())
    properties["allow.everyone.if.no.acl.found"] = str(not closed).lower()
    file.write_text(written(properties))
    java = [str(new_prepare.java.program), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]
    java += [*new_prepare.archive_options, "-cp", class_path(new_prepare.jars)]
    format_ = ["kafka.tools.StorageTool", "format", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config", str(file)]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        format_ += ["--add-scram", f'{mechanism}=[name="{USER}",password="{SECRET}"]']
    await program.run([*java, *format_])
    assert await program.ended(START_SECONDS) == 0, program.output[-4000:]
    await program.run([*java, "kafka.Kafka", str(file)])
    try:
        await program.answers(lambda: answers(broker.ports["PLAINTEXT"]), START_SECONDS)
        yield broker
    finally:
        await program.end(signal.SIGKILL)


def _properties(broker: SecureBroker, home: Path, controller: int) -> dict[str, str]:
    issued = broker.authority.issue("broker", "127.0.0.1")
    key = issued.write_pkcs12(home / "broker.p12")
    elsewhere = broker.authority.issue("broker", "elsewhere.example").write_pkcs12(home / "elsewhere.p12")
    trust = broker.authority.write_trust(broker.trust)
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in broker.ports.items())
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in _LISTENERS.items())
    user = f'user_{USER}="{SECRET}"'
    properties = {
        "process.roles": "broker,controller",
        "node.id": NODE,
        "controller.quorum.voters": f"{NODE}@127.0.0.1:{controller}",
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(home / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "metadata.max.idle.interval.ms": "5000",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "log.cleaner.dedupe.buffer.size": "16777216",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.keystore.type": "PKCS12",
        "listener.name.mutual.ssl.keystore.location": str(elsewhere),
        "listener.name.mutual.ssl.keystore.password": PASSWORD,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f'{_OAUTH} required unsecuredLoginStringClaim_sub="b";',
    }
    for name in ("sasl", "sasltls", "short", "shorttls"):
        prefix = f"listener.name.{name}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        properties[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN} required {user};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            properties[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_SCRAM} required;"
            if name.startswith("short"):
                properties[f"{prefix}.{mechanism}.connections.max.reauth.ms"] = str(int(SESSION_SECONDS * 1000))
    return properties
