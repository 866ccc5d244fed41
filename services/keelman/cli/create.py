"""What `keelman create` was given, as specs of the wire contract and connector configurations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec, WorkerNodes
from keelman.cli import kinds
from keelman.cli.kinds import Kind
from keelman.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `keelman create` as typed; which of them count depends on the kind."""

    nodes: str = ""
    managed: bool = False
    bootstrap_servers: str = ""
    broker_cluster: str = "default"
    count: int | None = None
    properties: tuple[str, ...] = ()
    cluster: str = ""
    config_file: Path | None = None
    values: tuple[str, ...] = ()


_MEANT_FOR: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("nodes", "--nodes", (kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS)),
    ("managed", "--managed", (kinds.BROKER_CLUSTERS,)),
    ("bootstrap_servers", "--bootstrap-servers", (kinds.BROKER_CLUSTERS,)),
    ("count", "--count", (kinds.WORKER_CLUSTERS,)),
    ("properties", "--property", (kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS)),
    ("cluster", "--cluster", (kinds.CONNECTORS,)),
    ("config_file", "--config-file", (kinds.CONNECTORS,)),
    ("values", "--set", (kinds.CONNECTORS,)),
)


def checked_options(kind: Kind, wanted: Wanted, *, start: bool) -> None:
    """Raises InvalidArgument for an option that says nothing about this kind."""
    for field, option, meant in _MEANT_FOR:
        if getattr(wanted, field) and kind not in meant:
            raise InvalidArgument(f"{option}: not for a {kind.singular}, only for {', '.join(k.plural for k in meant)}")
    if start and kind is not kinds.WORKER_CLUSTERS:
        raise InvalidArgument(f"--start: only for worker-clusters; a {kind.singular} starts by itself")


def broker_spec(wanted: Wanted) -> BrokerClusterSpec:
    """Spec of a broker cluster. Raises InvalidArgument unless it is either managed or external."""
    properties = pairs("--property", wanted.properties)
    if wanted.bootstrap_servers and (wanted.managed or wanted.nodes):
        raise InvalidArgument("--bootstrap-servers: not together with --managed or --nodes: the brokers run elsewhere")
    if wanted.bootstrap_servers:
        external = ExternalBrokers(bootstrap_servers=wanted.bootstrap_servers, client_properties=properties)
        return BrokerClusterSpec(external=external)
    names = listed(wanted.nodes)
    if not names:
        raise InvalidArgument(
            "--nodes: a managed broker cluster needs its nodes (see `keelman get nodes`); "
            "brokers that exist already are named with --bootstrap-servers host:port"
        )
    return BrokerClusterSpec(managed=ManagedBrokers(nodes=names, properties=properties))


def worker_spec(wanted: Wanted) -> WorkerClusterSpec:
    """Spec of a worker cluster: on the given nodes, or so many workers anywhere (1 when nothing is said)."""
    if wanted.nodes and wanted.count is not None:
        raise InvalidArgument("--count: not together with --nodes: one worker runs on each of these")
    spec = WorkerClusterSpec(broker_cluster=wanted.broker_cluster, properties=pairs("--property", wanted.properties))
    if wanted.nodes:
        spec.nodes.CopyFrom(WorkerNodes(names=listed(wanted.nodes)))
    else:
        spec.count = wanted.count or 1
    return spec


def connector_config(wanted: Wanted) -> dict[str, str]:
    """A connector's configuration: the file's, with --set over it. Raises InvalidArgument for an unreadable file."""
    config = read_config(wanted.config_file) if wanted.config_file else {}
    config |= pairs("--set", wanted.values)
    if "connector.class" not in config:
        raise InvalidArgument("connector.class: not set: give --config-file FILE, or --set connector.class=...")
    return config


def read_config(file: Path) -> dict[str, str]:
    """A configuration from a .properties file, or from JSON: the bare map, or Connect's {"name":…, "config":{…}}."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidArgument(f"--config-file: {file}: {reason}") from None
    if file.suffix != ".json":
        import javaproperties  # noqa: PLC0415  (part of the worker's extra, needed for such files only)

        return {str(k): str(v) for k, v in javaproperties.loads(text).items()}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"--config-file: {file} is not JSON: {error}") from None
    config = document.get("config", document) if isinstance(document, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise InvalidArgument(f"--config-file: {file}: wanted a JSON object of texts, or one under the key config")
    return {k: _text(v) for k, v in config.items() if v is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """key=value texts as a map. Raises InvalidArgument for a text without '='."""
    made: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidArgument.of(option, text, "key=value")
        made[key.strip()] = value
    return made


def listed(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
