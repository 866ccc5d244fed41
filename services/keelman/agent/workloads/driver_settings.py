"""The settings of both ends of a Spark cluster's links: its drivers, which are Spark services, and workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import javaproperties

from keelman.agent.trust.broker_certificate import AUTHORITY, KEYSTORE
from keelman.api.node.v1.workload_pb2 import SparkWorkload, WorkerWorkload, Workload
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.model.workload import SPARK_UNREACHABLE, joined_address

PROPERTIES = "spark-defaults.properties"
LINK_CHAIN, LINK_KEY, LINK_CA = "link.pem", "link.key", "link-ca.pem"
"""Files beside a worker: its certificate for links to drivers, its private key, and the CAs of drivers."""
CHAIN, KEY, TRUSTED = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates"


def own_name(workload: Workload) -> str:
    """Returns the name of a Spark service in its reports: the node, or @CLUSTER/NUMBER for a driver."""
    is_driver = bool(workload.spec.spark.cluster)
    return str(workload.name.partition("/")[2] if is_driver else workload.node)


def driver_settings(spec: SparkWorkload, folder: Path) -> dict[str, Any]:
    """Returns the settings that a driver has beside those of a node's service. Slots of other hosts call it at a port
    of its own; the node's own address for that is its service's."""
    slots = joined_address(spec.host, spec.slot_port) if spec.slot_port else ""
    settings: dict[str, Any] = {"cluster": spec.cluster, "standby": "true", "advertised_address": slots}
    settings |= {
        name: value
        for name in ("executor_cores", "executor_memory_mb", "executor_python")
        if (value := getattr(spec, name))
    }
    if spec.tls:
        keystore, authority = folder / KEYSTORE, folder / AUTHORITY
        settings |= {"trust": "loopback", "tls_server_name": ""}
        settings |= {f"{prefix}{name}": keystore for prefix in ("", "link_") for name in ("tls_certificate", "tls_key")}
        settings |= {"tls_ca": authority, "link_client_ca": authority}
    return settings


def driver_properties(spec: SparkWorkload, folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Returns the file with Spark's properties, named in the settings: those of the cluster over those of the node's
    own file. None where the cluster has none. Raises InvalidArgument for a file that cannot be read."""
    if not spec.properties:
        return {}
    merged = _own_properties(str(settings.get("spark_properties", ""))) | dict(spec.properties)
    settings["spark_properties"] = folder / PROPERTIES
    return {PROPERTIES: javaproperties.dumps(sorted(merged.items()), timestamp=None)}


def _own_properties(file: str) -> dict[str, str]:
    if not file:
        return {}
    try:
        return dict(javaproperties.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        legal = f"a readable properties file ({error})"
        raise InvalidArgument.of("spark_properties of spark.toml", file, legal) from None


def link_settings(spec: WorkerWorkload, folder: Path, settings: dict[str, Any]) -> Mapping[str, str]:
    """Returns the files with a worker's certificate for its links to drivers, named in the settings; none for links in
    plain text. Raises Unavailable while its Spark cluster has no driver."""
    if spec.spark_cluster and not spec.spark_address:
        message = f"Spark cluster {spec.spark_cluster} has no driver yet"
        raise Unavailable(message, reason=SPARK_UNREACHABLE)
    if not spec.spark_client_properties:
        return {}
    named = {
        "spark_tls_certificate": (LINK_CHAIN, CHAIN),
        "spark_tls_key": (LINK_KEY, KEY),
        "spark_ca": (LINK_CA, TRUSTED),
    }
    settings |= {setting: folder / file for setting, (file, _) in named.items()}
    return {file: spec.spark_client_properties[key] for file, key in named.values()}
