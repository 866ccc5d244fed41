"""Puts together the properties of a connector's own clients: the worker's, and over them what the connector
overrides."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.kafka.properties.keys import ClientKind
from keelman.model.keys import under

_SERVERS = "bootstrap.servers"
_SHARED = (_SERVERS, "client.dns.lookup")
_TRUST = ("ssl.",)
_IDENTITY = ("security.", "sasl.")


def merged(worker: Mapping[str, str], connector: Mapping[str, str], client: ClientKind) -> dict[str, str]:
    """How the worker reaches its brokers, its `<client>.` keys, then the connector's `<client>.override.` keys.

    Connect has the worker's own security keys repeated under each client's prefix; here they hold for all clients of
    the same brokers. To other brokers no SASL credentials are sent but those under the client's own prefixes.
    """
    given = {**under(f"{client}.", worker), **under(f"{client}.override.", connector)}
    given = {k: v for k, v in given.items() if not k.startswith("override.")}
    same = given.get(_SERVERS, worker.get(_SERVERS)) == worker.get(_SERVERS)
    prefixes = (*_TRUST, *_IDENTITY) if same else _TRUST
    return {**{k: v for k, v in worker.items() if k in _SHARED or k.startswith(prefixes)}, **given}


def sink_group(worker: Mapping[str, str], connector: Mapping[str, str], name: str) -> str:
    """The consumer group of a sink's tasks: what the connector, else the worker gives its consumers, else Connect's."""
    return merged(worker, connector, "consumer").get("group.id", "").strip() or f"connect-{name}"


def sink_member(worker: Mapping[str, str], name: str, task: int) -> str:
    """The static member that a sink's task is in its group. The worker cluster's `group.id` is part of it, as of
    transactional ids: sinks of one name in two worker clusters share a group, and must not shut each other out."""
    return "-".join(filter(None, (worker.get("group.id", "").strip(), name, str(task))))
