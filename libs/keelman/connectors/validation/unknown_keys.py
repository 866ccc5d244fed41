"""Keys of a connector's configuration that have no effect: those that nothing reads, each with the key that was
probably meant, and those of clients that are passed over, each with the reason.

Connect accepts every key, and so does `validate`: these are notes for people, not errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from keelman.connect import contract
from keelman.connect.config.client_definitions import client_keys
from keelman.connect.config.connector_keys import ROLES
from keelman.connect.config.near_keys import mistyped, similar
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.plugin import Connector, Direction
from keelman.connect.topic_creation import DEFAULT, GROUPS, OWN_KEYS, PREFIX
from keelman.connectors import shipped
from keelman.connectors.registry import PluginRegistry, full_name
from keelman.connectors.validation.configuration import definition_of
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import ignored, ignored_by_mirrors
from keelman.model.keys import under

Config = Mapping[str, str]
_CLIENTS = get_args(ClientKind)
_FRAMEWORK = ("errors.", "transforms.", "predicates.", "tasks.", "transaction.", "exactly.once.", "offsets.storage.")
"""What begins so is Connect's: no connector has such keys of its own."""
_OPEN = (*(f"{client}.override." for client in _CLIENTS), *(f"{role}.converter." for role in ROLES), PREFIX)
"""What begins so may be read by interceptors, clients of registries and brokers."""
_MIRROR, _SPARK = ("source.", "target.", *(f"{client}." for client in _CLIENTS)), ("spark.option.", "spark.conf.")
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
_SHIPPED: dict[str, tuple[str, ...]] = {
    **{entry.class_name: () for entry in shipped.ALL if entry.is_connector},
    MIRROR: (
        *_MIRROR,
        "topics.blacklist",
        "config.properties.blacklist",
    ),
    "keelman.connectors.KafkaSinkConnector": ("target.cluster.",),
    "keelman.connectors.SparkSourceConnector": _SPARK,
    "keelman.connectors.SparkSinkConnector": _SPARK,
}
"""The connectors that we ship, which read no other keys than those of their definitions and what begins so."""


def notes(connector: type[Connector], config: Config, worker: Config) -> list[str]:
    """Returns a note for each unknown key, e.g. `fiel: unknown, did you mean file?`, and for each ignored client
    property, e.g. `producer.override.acks: ignored: ...`, sorted.

    A third party's connector may read keys that it does not define: of its own keys only those close to a known key
    get a note. Runs in a thread; raises what the connector's `config_def` raises.
    """
    keys = _known(connector, config, worker)
    open_to = _SHIPPED.get(connector.names[0])
    lines = ignored_client_keys(config)
    for key in sorted(config.keys() - keys):
        ours = key.startswith(_FRAMEWORK) or (open_to is not None and not key.startswith((*open_to, *_OPEN)))
        near = mistyped(key, keys) or (similar(key, keys) if ours else "")
        if near and not (open_to and key.startswith(open_to)):
            lines.append(f"{key}: unknown, did you mean {near}?")
        elif ours:
            lines.append(f"{key}: unknown, nothing reads it")
    return sorted(lines)


def ignored_client_keys(config: Config) -> list[str]:
    """The notes on client properties that are passed over, of a mirror's consumer too."""
    if not any(".override." in key or "consumer." in key for key in config):
        return []
    reasons = {
        f"{client}.override.{key}": reason
        for client in _CLIENTS
        for key, reason in ignored(under(f"{client}.override.", config), client).items()
    }
    if full_name(config.get("connector.class", "")) == MIRROR:
        for prefix in ("consumer.", "source.consumer."):
            own = {key: value for key, value in under(prefix, config).items() if not key.startswith("override.")}
            reasons |= {f"{prefix}{key}": reason for key, reason in ignored_by_mirrors(own).items()}
    return [f"{key}: ignored: {reason}" for key, reason in reasons.items()]


def _known(connector: type[Connector], config: Config, worker: Config) -> set[str]:
    keys = {*definition_of(connector, config, worker).keys, *contract.CONFIG_DEF.of(connector.config_def).keys}
    keys.update(f"{client}.override.{name}" for client in _CLIENTS for name in client_keys(client))
    registry = PluginRegistry()
    for role in ROLES:
        named = registry.find(config.get(f"{role}.converter") or "")
        kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
        if named is not None:
            keys.update(f"{role}.converter.{name}" for name in registry.definition(named, kind).keys)
    if connector.direction is Direction.SOURCE:
        groups = [DEFAULT, *(part.strip() for part in config.get(GROUPS, "").split(",") if part.strip())]
        keys.update(f"{PREFIX}{group}.{name}" for group in groups for name in OWN_KEYS)
    return keys
