"""Makes the server.properties of a managed broker: ours over Kafka's defaults, the user's over ours."""

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
# It cannot be changed later, since the number decides where a group's or a transaction's records are found.
INTERNAL_PARTITIONS = 12

# Kafka's 128 MiB are touched whole at start; 16 MiB hold the keys of a 600,000-record segment in one pass.
CLEANER_BUFFER_BYTES = 16 * 1024 * 1024

# A broker that is alone has nobody to take its partitions over, so giving it up helps nobody, and loses markers of
# committed transactions (docs/decisions/0001): its session is as long as Kafka can count, against freezes of any length
# (a paused machine, a suspended container). Nor may it hand its partitions over when it ends in order: they would have
# no leader for a moment, with the same loss. What lapses its registration before the next start is `old_self.py`.
SESSION_MS_ALONE, BEAT_MS_ALONE = 2**31 - 1, 500
# A broker that was killed may not come back before its cluster has given its old self up. Kafka's 9 s (and a beat each
# 2 s) guard against needless moves of leaders.
SESSION_MS, BEAT_MS = 6_000, 1_000
# A broker whose host is gone is silent. What others have asked it, markers of transactions among that, is asked again
# of who leads now after this time, not after Kafka's 30 s, in which nothing of these transactions can be read.
REQUEST_MS, CONNECT_MS = 6_000, 3_000
# A minute is little for a host that does much else: Kafka would give up, end, and begin again from the start.
REGISTRATION_MS = 300_000


def server_properties(settings: Settings) -> dict[str, str]:
    """All properties, in the order they are written. Raises InvalidArgument naming the setting at fault."""
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
        raise InvalidArgument.of("broker.home", str(settings.home), "a path without commas; Kafka takes it for a list")
    voters = quorum(settings)
    replicas = min(3, settings.replicas or len(voters))
    return {**_identity(settings, voters), **_habits(replicas), **settings.properties}


def _identity(settings: Settings, voters: tuple[str, ...]) -> dict[str, str]:
    """Who and where the broker is."""
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
    """How it behaves, alone or as one of several."""
    alone = replicas == 1
    # With two replicas, two that must be in sync would stop writes when one of the brokers does.
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
    if not alone:
        properties["request.timeout.ms"] = str(REQUEST_MS)
        properties["socket.connection.setup.timeout.ms"] = str(CONNECT_MS)
        properties["socket.connection.setup.timeout.max.ms"] = str(REQUEST_MS)
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.num.partitions"] = str(INTERNAL_PARTITIONS)
        properties[f"{topic}.replication.factor"] = str(replicas)
        properties[f"{topic}.min.isr"] = in_sync
    return properties


def quorum(settings: Settings) -> tuple[str, ...]:
    """The cluster's voters as id@host:port, this broker among them if it is a controller. Raises InvalidArgument."""
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
        legal = "must be one of them" if settings.controller else "is a broker only: it must not be one of them"
        raise InvalidArgument.of(
            "broker.voters", ",".join(settings.voters), f"this broker (node_id {settings.node_id}) {legal}"
        )
    return settings.voters


def advertised(settings: Settings) -> str:
    """The host:port that clients get. Raises InvalidArgument where it cannot be known."""
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
    """The address at which this process reaches its own broker."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)


def written(properties: Mapping[str, str]) -> str:
    """The text of a .properties file for these properties, escaped as Java reads it."""
    text: str = javaproperties.dumps(properties, timestamp=False)
    return text
