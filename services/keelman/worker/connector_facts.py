"""Reads a connector's class, direction and producer ids from its configuration alone."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.connector_keys import WORKER_SUPPORT
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.connectors.registry import find_connector
from keelman.model.errors import KeelmanError, NotFound
from keelman.model.work import Work
from keelman.workers.properties.typed import WorkerProperties

UNKNOWN = "unknown"
# The worker's properties that matter to copying.
PREFIXES = (
    "bootstrap.servers",
    "key.converter",
    "value.converter",
    "header.converter",
    "producer.",
    "consumer.",
    "admin.",
    "security.",
    "sasl.",
    "ssl.",
    "offset.",
    "config.storage.topic",
    "status.storage.topic",
    "topic.",
    "keelman.",
    "group.id",
    WORKER_SUPPORT,
    "connector.client.config.override.policy",
)


def shared_worker_properties(raw: Mapping[str, str]) -> dict[str, str]:
    """Returns the only worker properties that go to other processes, in tickets and in questions."""
    return {key: value for key, value in raw.items() if key.startswith(PREFIXES)}


def is_source(connector_config: Mapping[str, str]) -> bool:
    """Returns True for a connector that writes to Kafka. Raises NotFound for an unknown class."""
    return class_of(connector_config).direction is Direction.SOURCE


def class_of(config: Mapping[str, str]) -> type[Connector]:
    """Returns the class that a connector's configuration names. Raises NotFound for an unknown one."""
    return find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))


def is_sink(connector_config: Mapping[str, str]) -> bool:
    """Returns True for a connector that reads from Kafka; False for an unknown class."""
    try:
        return not is_source(connector_config)
    except NotFound:
        return False


def is_exactly_once_source(properties: WorkerProperties, connector_config: Mapping[str, str]) -> bool:
    """Returns True for a source whose tasks write in transactions; False for a sink and for an unknown class."""
    try:
        return properties.exactly_once_sources and is_source(connector_config)
    except NotFound:
        return False


def transactional_id(group_id: str, work: Work) -> str:
    """Returns the id of a source task's producer, the same as Connect's, so that each side fences the other."""
    return f"{group_id}-{work.connector}-{work.task}"


def connector_type(config: Mapping[str, str]) -> str:
    """Returns source, sink or unknown. It searches for the class: many connectors have the same."""
    try:
        return "source" if is_source(config) else "sink"
    except (ConnectError, KeelmanError):
        return UNKNOWN
