"""Lists the keys of Java's Kafka clients with type, importance and default, as of Kafka 4.3: used by `validate` for
overrides.

How their values are used here is in another table, keelman.kafka.properties.table, which nothing
in this package may import. tests/recorded/data/clients.json checks that both have the same keys.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, parse_type

Client = Literal["producer", "consumer", "admin"]

# Name, clients (producer, consumer, admin), type, importance, default: - for null, ! for none, "" for an empty text.
_TABLE = """
acks p STRING LOW all
allow.auto.create.topics c BOOLEAN MEDIUM true
auto.commit.interval.ms c INT LOW 5000
auto.offset.reset c STRING MEDIUM latest
batch.size p INT MEDIUM 16384
bootstrap.controllers a LIST HIGH ""
bootstrap.servers a LIST HIGH ""
bootstrap.servers pc LIST HIGH !
buffer.memory p LONG HIGH 33554432
check.crcs c BOOLEAN LOW true
client.dns.lookup pca STRING MEDIUM use_all_dns_ips
client.id c STRING LOW ""
client.id pa STRING MEDIUM ""
client.rack c STRING LOW ""
compression.gzip.level p INT MEDIUM -1
compression.lz4.level p INT MEDIUM 9
compression.type p STRING HIGH none
compression.zstd.level p INT MEDIUM 3
config.providers pca LIST LOW ""
connections.max.idle.ms a LONG MEDIUM 300000
connections.max.idle.ms pc LONG MEDIUM 540000
default.api.timeout.ms ca INT MEDIUM 60000
delivery.timeout.ms p INT MEDIUM 120000
enable.auto.commit c BOOLEAN MEDIUM true
enable.idempotence p BOOLEAN LOW true
enable.metrics.push a BOOLEAN LOW false
enable.metrics.push pc BOOLEAN LOW true
exclude.internal.topics c BOOLEAN MEDIUM true
fetch.max.bytes c INT MEDIUM 52428800
fetch.max.wait.ms c INT LOW 500
fetch.min.bytes c INT HIGH 1
group.id c STRING HIGH -
group.instance.id c STRING MEDIUM -
group.protocol c STRING HIGH classic
group.remote.assignor c STRING MEDIUM -
heartbeat.interval.ms c INT HIGH 3000
interceptor.classes pc LIST LOW ""
internal.throw.on.fetch.stable.offset.unsupported c BOOLEAN LOW false
isolation.level c STRING MEDIUM read_uncommitted
key.deserializer c CLASS HIGH !
key.serializer p CLASS HIGH !
linger.ms p LONG MEDIUM 5
max.block.ms p LONG MEDIUM 60000
max.in.flight.requests.per.connection p INT LOW 5
max.partition.fetch.bytes c INT HIGH 1048576
max.poll.interval.ms c INT MEDIUM 300000
max.poll.records c INT MEDIUM 500
max.request.size p INT MEDIUM 1048576
metadata.max.age.ms pca LONG LOW 300000
metadata.max.idle.ms p LONG LOW 300000
metadata.recovery.rebootstrap.trigger.ms pca LONG LOW 300000
metadata.recovery.strategy pca STRING LOW rebootstrap
metric.reporters pca LIST LOW org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples pca INT LOW 2
metrics.recording.level pca STRING LOW INFO
metrics.sample.window.ms pca LONG LOW 30000
partition.assignment.strategy c LIST MEDIUM class org.apache.kafka.clients.consumer.RangeAssignor,\
class org.apache.kafka.clients.consumer.CooperativeStickyAssignor
partitioner.adaptive.partitioning.enable p BOOLEAN LOW true
partitioner.availability.timeout.ms p LONG LOW 0
partitioner.class p CLASS MEDIUM -
partitioner.ignore.keys p BOOLEAN MEDIUM false
receive.buffer.bytes p INT MEDIUM 32768
receive.buffer.bytes ca INT MEDIUM 65536
reconnect.backoff.max.ms pca LONG LOW 1000
reconnect.backoff.ms pca LONG LOW 50
request.timeout.ms pca INT MEDIUM 30000
retries p INT HIGH 2147483647
retries a INT LOW 2147483647
retry.backoff.max.ms pca LONG LOW 1000
retry.backoff.ms pca LONG LOW 100
sasl.client.callback.handler.class pca CLASS MEDIUM -
sasl.jaas.config pca PASSWORD MEDIUM -
sasl.kerberos.kinit.cmd pca STRING LOW /usr/bin/kinit
sasl.kerberos.min.time.before.relogin pca LONG LOW 60000
sasl.kerberos.service.name pca STRING MEDIUM -
sasl.kerberos.ticket.renew.jitter pca DOUBLE LOW 0.05
sasl.kerberos.ticket.renew.window.factor pca DOUBLE LOW 0.8
sasl.login.callback.handler.class pca CLASS MEDIUM -
sasl.login.class pca CLASS MEDIUM -
sasl.login.connect.timeout.ms pca INT LOW -
sasl.login.read.timeout.ms pca INT LOW -
sasl.login.refresh.buffer.seconds pca SHORT LOW 300
sasl.login.refresh.min.period.seconds pca SHORT LOW 60
sasl.login.refresh.window.factor pca DOUBLE LOW 0.8
sasl.login.refresh.window.jitter pca DOUBLE LOW 0.05
sasl.login.retry.backoff.max.ms pca LONG LOW 10000
sasl.login.retry.backoff.ms pca LONG LOW 100
sasl.mechanism pca STRING MEDIUM GSSAPI
sasl.oauthbearer.assertion.algorithm pca STRING MEDIUM RS256
sasl.oauthbearer.assertion.claim.aud pca STRING MEDIUM -
sasl.oauthbearer.assertion.claim.exp.seconds pca INT LOW 300
sasl.oauthbearer.assertion.claim.iss pca STRING MEDIUM -
sasl.oauthbearer.assertion.claim.jti.include pca BOOLEAN MEDIUM false
sasl.oauthbearer.assertion.claim.nbf.seconds pca INT LOW 60
sasl.oauthbearer.assertion.claim.sub pca STRING MEDIUM -
sasl.oauthbearer.assertion.file pca STRING MEDIUM -
sasl.oauthbearer.assertion.private.key.file pca STRING MEDIUM -
sasl.oauthbearer.assertion.private.key.passphrase pca PASSWORD MEDIUM -
sasl.oauthbearer.assertion.template.file pca STRING MEDIUM -
sasl.oauthbearer.client.credentials.client.id pca STRING MEDIUM -
sasl.oauthbearer.client.credentials.client.secret pca PASSWORD MEDIUM -
sasl.oauthbearer.clock.skew.seconds pca INT LOW 30
sasl.oauthbearer.expected.audience pca LIST LOW ""
sasl.oauthbearer.expected.issuer pca STRING LOW -
sasl.oauthbearer.header.urlencode pca BOOLEAN LOW false
sasl.oauthbearer.jwks.endpoint.refresh.ms pca LONG LOW 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms pca LONG LOW 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms pca LONG LOW 100
sasl.oauthbearer.jwks.endpoint.url pca STRING MEDIUM -
sasl.oauthbearer.jwt.retriever.class pca CLASS MEDIUM org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class pca CLASS MEDIUM org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope pca STRING MEDIUM -
sasl.oauthbearer.scope.claim.name pca STRING LOW scope
sasl.oauthbearer.sub.claim.name pca STRING LOW sub
sasl.oauthbearer.token.endpoint.url pca STRING MEDIUM -
security.protocol pca STRING MEDIUM PLAINTEXT
security.providers pca STRING LOW -
send.buffer.bytes pca INT MEDIUM 131072
session.timeout.ms c INT HIGH 45000
share.acknowledgement.mode c STRING MEDIUM implicit
share.acquire.mode c STRING MEDIUM BATCH_OPTIMIZED
socket.connection.setup.timeout.max.ms pca LONG MEDIUM 30000
socket.connection.setup.timeout.ms pca LONG MEDIUM 10000
ssl.cipher.suites pca LIST LOW ""
ssl.enabled.protocols pca LIST MEDIUM TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm pca STRING LOW https
ssl.engine.factory.class pca CLASS LOW -
ssl.key.password pca PASSWORD HIGH -
ssl.keymanager.algorithm pca STRING LOW SunX509
ssl.keystore.certificate.chain pca PASSWORD HIGH -
ssl.keystore.key pca PASSWORD HIGH -
ssl.keystore.location pca STRING HIGH -
ssl.keystore.password pca PASSWORD HIGH -
ssl.keystore.type pca STRING MEDIUM JKS
ssl.protocol pca STRING MEDIUM TLSv1.3
ssl.provider pca STRING MEDIUM -
ssl.secure.random.implementation pca STRING LOW -
ssl.trustmanager.algorithm pca STRING LOW PKIX
ssl.truststore.certificates pca PASSWORD HIGH -
ssl.truststore.location pca STRING HIGH -
ssl.truststore.password pca PASSWORD HIGH -
ssl.truststore.type pca STRING MEDIUM JKS
transaction.timeout.ms p INT LOW 60000
transaction.two.phase.commit.enable p BOOLEAN LOW false
transactional.id p STRING LOW -
value.deserializer c CLASS HIGH !
value.serializer p CLASS HIGH !
"""


@functools.cache
def client_keys(client: Client) -> dict[str, ConfigKey]:
    """Returns the keys of such a client."""
    rows = (line.split(" ", 4) for line in _TABLE.split("\n") if line)
    return {name: _key(client, name, *row) for name, clients, *row in rows if client[0] in clients}


def _key(client: str, name: str, kind: str, importance: str, default: str) -> ConfigKey:
    value: Any = None
    if default == "!":
        value = REQUIRED
    elif default != "-":
        value = parse_type(name, "" if default == '""' else default, Type(kind))
    doc = f"As in Java's {client}, for the connector alone."
    return ConfigKey(name, Type(kind), value, Importance(importance), doc)
