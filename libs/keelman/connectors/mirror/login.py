"""Completes a mirror's configuration with what its worker knows of its own brokers: their address and the login. Pure.

Connect's producers write a mirror's copies with the worker's login, and MirrorMaker 2 wants it again for the rest:
its consumers, its admin clients and its producers of offset syncs. Here they have it where they call the same brokers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from keelman.connect.policy.topics import STORAGE
from keelman.connectors.mirror.config import TOPICS_EXCLUDE, Side, client_properties
from keelman.connectors.mirror.policy import IDENTITY_POLICY
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.properties.keys import SECURITY, ClientKind

SERVERS = "bootstrap.servers"
SIDES: tuple[Side, ...] = get_args(Side)
KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
_EXCLUDE, _OLD_EXCLUDE = "topics.exclude", "topics.blacklist"


def completed(config: Mapping[str, str], worker: Mapping[str, str]) -> dict[str, str]:
    """Returns a mirror's configuration for one worker: without a target it gets the worker's own brokers, if they are
    written to; clients that call the worker's own brokers, and whose side sets no security properties, get the worker's
    login; and the worker's storage topics are excluded where they are among the mirrored ones.

    A client calls the worker's own brokers if all its addresses are addresses of the worker's. So a login never goes to
    an address that it was not configured for.
    """
    target = f"target.cluster.{SERVERS}"
    own = addresses(worker.get(SERVERS))
    written = addresses(merged(worker, config, "producer").get(SERVERS))
    new = dict(config)
    if own and written == own and not config.get(target, "").strip():
        new[target] = worker[SERVERS]
    logins: dict[str, str] = {}
    for side in SIDES:
        properties = {kind: client_properties(new, side, kind) for kind in KINDS}
        if any(key.startswith(SECURITY) for of_kind in properties.values() for key in of_kind):
            continue
        for kind, of_kind in properties.items():
            if _are_own(of_kind.get(SERVERS), own):
                logins |= {f"{side}.{kind}.{key}": value for key, value in _login(worker, kind, own).items()}
    return {**new, **logins, **_without_storage(new, worker, own)}


def addresses(text: str | None) -> frozenset[str]:
    """Returns the addresses in a list of brokers, without protocols, in lower case."""
    parts = (part.strip().lower().rpartition("://")[2] for part in (text or "").split(","))
    return frozenset(part for part in parts if part)


def _are_own(servers: str | None, own: frozenset[str]) -> bool:
    called = addresses(servers)
    return bool(called) and called <= own


def _login(worker: Mapping[str, str], kind: ClientKind, own: frozenset[str]) -> dict[str, str]:
    """Returns the security properties of the worker's clients of a kind; without those of clients that it has call
    other brokers."""
    properties = merged(worker, {}, kind)
    if addresses(properties.get(SERVERS)) != own:
        properties = dict(worker)
    return {key: value for key, value in properties.items() if key.startswith(SECURITY)}


def _without_storage(config: Mapping[str, str], worker: Mapping[str, str], own: frozenset[str]) -> dict[str, str]:
    """Returns the excluded topics, with the worker's storage topics if they can be meant: a pattern never means these,
    whatever their names are."""
    by_name = config.get("replication.policy.class", "").strip() == IDENTITY_POLICY
    if not any(_are_own(config.get(f"{side}.cluster.{SERVERS}"), own) for side in (SIDES if by_name else SIDES[:1])):
        return {}
    names = sorted({topic for key in STORAGE if (topic := worker.get(key, "").strip())})
    present = config.get(_EXCLUDE, config.get(_OLD_EXCLUDE, ",".join(TOPICS_EXCLUDE)))
    return {_EXCLUDE: ",".join(filter(None, (present, *map(re.escape, names))))} if names else {}
