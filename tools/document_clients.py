"""Writes docs/client-properties.md from the table of client properties, so the page cannot differ from the code.

`python tools/document_clients.py` writes it; a unit test fails while it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from keelman.kafka.properties.keys import ClientKey
from keelman.kafka.properties.table import FETCHED, TABLE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "client-properties.md"
KINDS = (
    ("pca", "all clients"),
    ("pc", "producers and consumers"),
    ("p", "producers"),
    ("c", "consumers"),
    ("ca", "consumers and admin clients"),
)
HEAD = """# Client properties

Generated from the table in `libs/keelman/kafka/properties/table.py` by `tools/document_clients.py`; do not edit.

Files for Kafka Connect carry properties of Java's clients: those of the worker itself, `producer.`, `consumer.` and
`admin.` for its connectors' clients, and in connectors `producer.override.`, `consumer.override.`, `admin.override.`,
a mirror's `source.consumer.` and the like. This page says what becomes of each key that Java's clients of Kafka 4.3
know. A key that they do not know is ignored, as there.

| word | meaning |
|---|---|
| used | as Java means it, or as the page says |
| ignored | accepted, without effect, for the reason given; a warning names it |
| refused | the worker does not start or the connector is not valid; the reason is in the message |

The warnings of what is ignored are, for connectors, `connector_keys_unknown` in the worker's log and the header
`keelman-notes` when one is written, and `client_properties_ignored` when a worker begins one; for workers it is
`worker_properties_ignored`. There is none for a value that is named as accepted, which is done anyway.

Two libraries and some code of ours stand behind a connector: sinks read, and administrators ask, with librdkafka; all
else is aiokafka with producers and fetchers of our own. `librdkafka` names its setting; numbers outside of what it
takes become the nearest that it takes. A worker's own clients heed the keys of all clients that aiokafka knows or that
say how the brokers are reached; all else stands behind `producer.`, `consumer.` or `admin.`.

- **Inherited**: how to reach the worker's brokers (`bootstrap.servers`, `security.protocol`, `ssl.*`, `sasl.*`) holds
  for its connectors' clients too, unless they say otherwise. To other brokers than the worker's own these SASL
  credentials are never sent; what stands under `producer.`, `consumer.` or `admin.` goes wherever such a client goes,
  as in Connect: an override policy keeps connectors from naming other brokers.
- **Stores**: JKS, PKCS12 and PEM, from files or, for PEM, in place. What a file is its first bytes say. A JKS file is
  read with the keytool of the Java that keelman runs on.
- **SASL**: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. In `sasl.jaas.config` the login modules
  `PlainLoginModule`, `ScramLoginModule` and `OAuthBearerLoginModule` are known; no other is ever looked at, among them
  `JndiLoginModule` and `LdapLoginModule`, by which configurations have run foreign code in Java.
- **OAUTHBEARER**: unsecured tokens from the module's `unsecuredLogin…` options (for tests), or tokens from
  `sasl.oauthbearer.token.endpoint.url` with client id and secret, or from a `file:` URL. Each URL must be in the
  worker's `keelman.oauthbearer.allowed.urls` (comma-separated), or where that is not set in Java's option
  `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=` in KAFKA_OPTS. Tokens are renewed before they end. The token
  endpoint is trusted by the system's authorities, or by `ssl.truststore.*` options of the login module. One that does
  not answer is waited for, as is one that gives no more tokens though it gave some; each process asks it again after a
  time that doubles. The log line `token_unavailable` says why there is none, and for how long the old one is good.
  Previews, and looks at and replays of dead letters, are refused meanwhile and say the same.
- **A session that ends**, with its token or after the brokers' `connections.max.reauth.ms`: librdkafka logs in again;
  our own clients change to a new connection before, so no request is lost.
- **A broker that refuses** a client, or is not who it should be, is a lasting error that says so: a wrong password, a
  certificate that is not trusted, for another host or over, or none of ours where the broker wants one. A worker that
  starts ends, the task fails. Brokers that do not answer are waited for, and a worker that was let in before waits for
  those that refuse it, too; `topic_read_failed` says why.
- **What the engine owns**, beside Apache Kafka Connect 4.3: `transactional.id` and `enable.idempotence=false` of
  exactly-once sources are ignored with a warning by both. Connect obeys the others, and with most of them a task fails:
  `acks=1` of exactly-once sources, serializers and deserializers, `group.instance.id` of a sink with several tasks.
  `enable.auto.commit`, `group.protocol` and, without exactly-once, `acks` and `enable.idempotence` mean something
  there; here data is always delivered to all replicas once, and offsets are committed with it.
- **`connector.client.config.override.policy`**: All (when unset), Allowlist with
  `connector.client.config.override.allowlist`, Principal, None; short or Java class names.
"""


MIRRORS = """
## Of a mirror's consumer

A mirror reads with a fetcher of our own. Behind `source.consumer.` and `consumer.` it heeds how the brokers are
reached, and {heeded}. All other keys that are used above are ignored there, with a warning.
"""


def page() -> str:
    """The whole page."""
    sections = "".join(_section(clients, title) for clients, title in KINDS) + _section("a", "admin clients")
    heeded = ", ".join(f"`{key}`" for key in sorted(FETCHED))
    return HEAD + sections + MIRRORS.format(heeded=heeded)


def _section(clients: str, title: str) -> str:
    rows = sorted((row for row in TABLE if row.clients == clients), key=lambda row: row.name)
    lines = [f"\n## Of {title}\n\n| key | | librdkafka | what it does here |\n|---|---|---|---|\n"]
    return "".join([*lines, *(_line(row) for row in rows)])


def _line(row: ClientKey) -> str:
    named = f"`{row.librdkafka}`" if row.librdkafka else ""
    return f"| `{row.name}` | {row.use} | {named} | {'; '.join(_says(row)) or 'the same, where librdkafka is'} |\n"


def _says(row: ClientKey) -> Iterator[str]:
    if row.says:
        yield row.says.replace("|", "\\|")
    if row.aiokafka:
        yield f"aiokafka `{row.aiokafka}`"
    harmless = dict.fromkeys(one.rpartition(".")[2] for one in row.accepted if one)
    if harmless:
        yield "accepted: " + ", ".join(f"`{one}`" for one in harmless)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
