"""Merges the properties of a connector's own clients: the worker's, overridden by the connector's."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.kafka.properties.keys import ClientKind
from keelman.model.keys import under

_SERVERS = "bootstrap.servers"
_SHARED = (_SERVERS, "client.dns.lookup")
_TRUST = ("ssl.",)
_IDENTITY = ("security.", "sasl.")


def merged(worker: Mapping[str, str], connector: Mapping[str, str], client: ClientKind) -> dict[str, str]:
    """Merges the worker's access to its brokers, its `<client>.` keys, and the connector's `<client>.override.` keys.

    Connect requires the worker's security keys again under each client's prefix; here they hold for all clients of
    the same brokers. Other brokers get no SASL credentials except those under the client's own prefixes.
    """
    own = {**under(f"{client}.", worker), **under(f"{client}.override.", connector)}
    own = {k: v for k, v in own.items() if not k.startswith("override.")}
    same = own.get(_SERVERS, worker.get(_SERVERS)) == worker.get(_SERVERS)
    prefixes = (*_TRUST, *_IDENTITY) if same else _TRUST
    return {**{k: v for k, v in worker.items() if k in _SHARED or k.startswith(prefixes)}, **own}


def sink_group(worker: Mapping[str, str], connector: Mapping[str, str], name: str) -> str:
    """Returns the consumer group of a sink's tasks: set for the connector's or the worker's consumers, or Connect's."""
    return merged(worker, connector, "consumer").get("group.id", "").strip() or f"connect-{name}"


def sink_group_client(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Returns Java's properties of an administrator in the cluster that a sink's consumers read from."""
    return {**merged(worker, connector, "consumer"), **admin_keys(worker, connector)}


def admin_keys(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Returns the keys that are for administrators alone, without their prefixes."""
    return {**under("admin.", worker), **under("admin.override.", connector)}


def sink_member(worker: Mapping[str, str], name: str, task: int) -> str:
    """Returns a sink task's static member id in its group. It contains the worker cluster's `group.id`, as do
    transactional ids: sinks of one name in two worker clusters share a group, and must not fence each other."""
    return "-".join(filter(None, (worker.get("group.id", "").strip(), name, str(task))))
