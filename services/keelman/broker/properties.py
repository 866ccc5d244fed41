"""Builds the server.properties of a managed broker: ours override Kafka's defaults, the user's override ours."""

from __future__ import annotations

from collections.abc import Mapping

import javaproperties

from keelman.broker.settings import Settings
from keelman.broker.tls import LISTENER as TLS
from keelman.broker.tls import Stores
from keelman.kafka.properties.broker_keys import SET_ELSEWHERE
from keelman.model.errors import InvalidArgument
from keelman.model.workload import joined_address

LISTENER = "PLAINTEXT"
CONTROLLER = "CONTROLLER"

# Kafka's 50 pays where many brokers share the load of one cluster's groups; every partition costs files to open and a
# log to load at each start (measured: 1 s and 50 MB more with 50). 12 shares evenly over 1, 2, 3, 4, 6 or 12 brokers.
# It cannot be changed later, since the number decides which partition holds a group's or a transaction's records.
INTERNAL_PARTITIONS = 12

# Kafka touches all of its default 128 MiB at start; 16 MiB hold the keys of a 600,000-record segment in one pass.
CLEANER_BUFFER_BYTES = 16 * 1024 * 1024

# No other broker can take over the partitions of a lone broker, so to fence it is useless, and loses markers of
# committed transactions (docs/decisions/0001): its session is as long as Kafka can count, against freezes of any length
# (a paused machine, a suspended container). A lone broker must not hand its partitions over at shutdown either: they
# would have no leader for a moment, with the same loss. `old_self.py` ends its registration before the next start.
SESSION_MS_ALONE, BEAT_MS_ALONE = 2**31 - 1, 500
IDLE_MS_ALONE = 5_000  # no other controller reads its empty records, each of which it syncs to the disk; by default 500
# A killed broker may not come back before its cluster has fenced its earlier registration. Kafka's 9 s (and a heartbeat
# each 2 s) guard against needless moves of leaders.
SESSION_MS, BEAT_MS = 6_000, 1_000
# A broker whose host is gone does not answer. Other brokers repeat their requests, transaction markers among them, to
# the new leader after this time, not after Kafka's 30 s, during which nothing of these transactions can be read.
REQUEST_MS, CONNECT_MS = 6_000, 3_000
# Kafka's minute is short for a busy host: the broker would give up, end, and start again from the beginning.
REGISTRATION_MS = 300_000


def server_properties(settings: Settings) -> dict[str, str]:
    """Returns all properties, in the order of the file. Raises InvalidArgument with the name of the wrong setting."""
    for key in settings.properties:
        if key in SET_ELSEWHERE:
            raise InvalidArgument.of(
                "broker.properties", key, f"this property follows from other settings; use {SET_ELSEWHERE[key]}"
            )
    if settings.controller and settings.port == settings.controller_port:
        raise InvalidArgument.of("broker.controller_port", settings.controller_port, "a port other than broker.port")
    if settings.metrics_port and settings.metrics_port in (settings.port, settings.controller_port):
        raise InvalidArgument.of("broker.metrics_port", settings.metrics_port, "a port that it has for nothing else")
    if "," in str(settings.home.absolute()):
        raise InvalidArgument.of(
            "broker.home", str(settings.home), "a path without commas, which would make it a list for Kafka"
        )
    voters = quorum(settings)
    replicas = min(3, settings.replicas or len(voters))
    return {**_identity(settings, voters), **_habits(replicas), **settings.properties}


def _identity(settings: Settings, voters: tuple[str, ...]) -> dict[str, str]:
    """Returns the properties for the broker's roles, id, addresses and folders."""
    data = str(settings.home.absolute() / "data")
    stores = Stores.of(settings)
    name, protocol = (LISTENER, LISTENER) if stores is None else (TLS, "SSL")
    listeners = [f"{name}://{joined_address(settings.host, settings.port)}"]
    if settings.controller:
        listeners.append(f"{CONTROLLER}://{joined_address(settings.host, settings.controller_port)}")
    return {
        "process.roles": "broker,controller" if settings.controller else "broker",
        "node.id": str(settings.node_id),
        "controller.quorum.voters": ",".join(voters),
        "listeners": ",".join(listeners),
        "advertised.listeners": f"{name}://{advertised(settings)}",
        "listener.security.protocol.map": f"{name}:{protocol},{CONTROLLER}:{protocol}",
        "inter.broker.listener.name": name,
        "controller.listener.names": CONTROLLER,
        "log.dirs": ",".join(settings.data_folders) or data,
        **({"metadata.log.dir": data} if settings.data_folders else {}),
        **({} if stores is None else stores.properties),
    }


def _habits(replicas: int) -> dict[str, str]:
    """Returns the properties for the broker's behavior, alone or as one of several."""
    alone = replicas == 1
    # With two replicas, min.insync.replicas=2 would stop writes as soon as one of the brokers stops.
    in_sync = "2" if replicas > 2 else "1"
    properties = {
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "broker.session.timeout.ms": str(SESSION_MS_ALONE if alone else SESSION_MS),
        "controlled.shutdown.enable": "false" if alone else "true",
        "broker.heartbeat.interval.ms": str(BEAT_MS_ALONE if alone else BEAT_MS),
        "initial.broker.registration.timeout.ms": str(REGISTRATION_MS),
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(CLEANER_BUFFER_BYTES),
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "offsets.topic.replication.factor": str(replicas),
    }
    if alone:
        properties["metadata.max.idle.interval.ms"] = str(IDLE_MS_ALONE)
    else:
        properties["request.timeout.ms"] = str(REQUEST_MS)
        properties["socket.connection.setup.timeout.ms"] = str(CONNECT_MS)
        properties["socket.connection.setup.timeout.max.ms"] = str(REQUEST_MS)
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.num.partitions"] = str(INTERNAL_PARTITIONS)
        properties[f"{topic}.replication.factor"] = str(replicas)
        properties[f"{topic}.min.isr"] = in_sync
    return properties


def quorum(settings: Settings) -> tuple[str, ...]:
    """Returns the cluster's voters as id@host:port, this broker among them if it is a controller. Raises
    InvalidArgument."""
    if not settings.voters and not settings.controller:
        raise InvalidArgument.of("broker.voters", "", "the controllers as id@host:port, as this is a broker only")
    if not settings.voters:
        return (f"{settings.node_id}@{joined_address(local_host(settings), settings.controller_port)}",)
    for voter in settings.voters:
        node, at, address = voter.partition("@")
        host, _, port = address.rpartition(":")
        if not (at and node.isdigit() and host and port.isdigit()):
            raise InvalidArgument.of("broker.voters", voter, "id@host:port")
    votes = any(v.startswith(f"{settings.node_id}@") for v in settings.voters)
    if votes != settings.controller:
        legal = "must be in this list" if settings.controller else "is a broker only: it must not be in this list"
        raise InvalidArgument.of(
            "broker.voters", ",".join(settings.voters), f"this broker (node_id {settings.node_id}) {legal}"
        )
    return settings.voters


def advertised(settings: Settings) -> str:
    """Returns the host:port that clients get. Raises InvalidArgument if it cannot be derived from the settings."""
    if not settings.advertised:
        if settings.host in ("0.0.0.0", "::", ""):
            raise InvalidArgument.of(
                "broker.advertised", "", f"host:port; clients cannot connect to the listening address {settings.host!r}"
            )
        return joined_address(settings.host, settings.port)
    host, _, port = settings.advertised.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgument.of("broker.advertised", settings.advertised, "host:port")
    return settings.advertised


def local_host(settings: Settings) -> str:
    """Returns the host at which this process reaches its own broker."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)


def written(properties: Mapping[str, str]) -> str:
    """Returns the text of a .properties file for these properties, escaped as Java reads it."""
    text: str = javaproperties.dumps(properties, timestamp=False)
    return text
