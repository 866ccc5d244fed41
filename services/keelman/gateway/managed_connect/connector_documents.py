"""Translates connectors between this API and ours, and checks the rules that the clients do not check. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import (
    DedicatedCapacity,
    DedicatedConnector,
    DedicatedConnectorState,
)
from keelman.api.connect.v1.log_delivery_pb2 import LogDelivery
from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.control import document_of, iso, present
from keelman.gateway.managed_connect.errors import bad_member
from keelman.gateway.managed_connect.managed_resources import kept_arn
from keelman.gateway.managed_connect.members import LOG_TARGETS
from keelman.rpc.enums import word

GIB = 1 << 30
MEMORY_OF_MCU = 4 * GIB
TASKS_PER_MCU = 2
SCALE_IN, SCALE_OUT = 20, 80
"""CPU utilization in percent for policies that are not given."""
CLASS = "connector.class"
ECHOED = (
    "capacity", "kafkaCluster", "kafkaClusterClientAuthentication", "kafkaClusterEncryptionInTransit",
    "kafkaConnectVersion", "logDelivery", "networkType", "plugins", "serviceExecutionRoleArn", "workerConfiguration",
)  # fmt: skip
"""Members that are returned as they were sent."""
LOGS_NOT_DELIVERED = "LogDeliveryError.NotDelivered"
LOG_MEMBERS = {"file": "cloudWatchLogs", "s3": "s3", "kafka": "firehose"}
"""Members of workerLogDelivery by our delivery targets."""
RESTARTS_TASKS_FROM = (3, 7)
"""The first version of Kafka Connect that can restart only failed tasks."""
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})")


def checked_capacity(capacity: dict[str, Any]) -> dict[str, Any]:
    """Returns a capacity with the defaults of its policies filled in. Raises WireError."""
    scaled = capacity.get("autoScaling")
    if scaled is None:
        return capacity
    least, most = scaled["minWorkerCount"], scaled["maxWorkerCount"]
    member = "capacity.autoScaling"
    if least > most:
        raise bad_member(f"{member}.minWorkerCount", f"{least} is more than maxWorkerCount, which is {most}.")
    if scaled.get("maxAutoscalingTaskCount", most) < most:
        tasks = scaled["maxAutoscalingTaskCount"]
        raise bad_member(f"{member}.maxAutoscalingTaskCount", f"{tasks} is less than maxWorkerCount, which is {most}.")
    policies = {
        "scaleInPolicy": {"cpuUtilizationPercentage": SCALE_IN},
        "scaleOutPolicy": {"cpuUtilizationPercentage": SCALE_OUT},
    }
    policies_now = policies | scaled
    low, high = (policies_now[name]["cpuUtilizationPercentage"] for name in policies)
    if low >= high:
        raise bad_member(f"{member}.scaleInPolicy", f"{low} % is not less than that of scaleOutPolicy, {high} %.")
    return {"autoScaling": policies_now}


def capacity_message(capacity: Mapping[str, Any]) -> DedicatedCapacity:
    """Returns a checked capacity as our message: an MCU is a processor and 4 GiB for a worker with its slots."""
    provisioned = capacity.get("provisionedCapacity")
    mcus = (capacity["autoScaling"] if provisioned is None else provisioned)["mcuCount"]
    limits = ResourceLimits(cpus=mcus, memory_bytes=mcus * MEMORY_OF_MCU)
    if provisioned is not None:
        return DedicatedCapacity(count=provisioned["workerCount"], worker_limits=limits)
    scaled = capacity["autoScaling"]
    autoscale = Autoscale(
        min_workers=scaled["minWorkerCount"],
        max_workers=scaled["maxWorkerCount"],
        scale_in_cpu_percent=scaled["scaleInPolicy"]["cpuUtilizationPercentage"],
        scale_out_cpu_percent=scaled["scaleOutPolicy"]["cpuUtilizationPercentage"],
        tasks_per_worker=mcus * TASKS_PER_MCU,
        max_tasks=scaled.get("maxAutoscalingTaskCount", 0),
    )
    return DedicatedCapacity(autoscale=autoscale, worker_limits=limits)


def client_properties(
    body: Mapping[str, Any], roles: Mapping[str, Mapping[str, str]], tls: Mapping[str, str], *, account: str
) -> dict[str, str]:
    """Returns the client properties with which a connector's workers reach Kafka; `tls` are those for TLS without IAM.
    Raises WireError."""
    is_iam = body["kafkaClusterClientAuthentication"]["authenticationType"] == "IAM"
    is_tls = body["kafkaClusterEncryptionInTransit"]["encryptionType"] == "TLS"
    if not is_iam:
        return {"security.protocol": "SSL", **tls} if is_tls else {}
    if not is_tls:
        member = "kafkaClusterEncryptionInTransit.encryptionType"
        raise bad_member(member, "It must be TLS where authenticationType is IAM.")
    role = body["serviceExecutionRoleArn"]
    if f"::{account}:" not in role:
        raise bad_member("serviceExecutionRoleArn", f"It must be a role of the caller's account, {account}.")
    if role not in roles:
        reason = (
            f"IAM is a role's client properties for Kafka here, and {role} is none of the roles that this service is "
            "configured with: ask its operator for [[role]] in gateway.managed_connect_access_file."
        )
        raise bad_member("serviceExecutionRoleArn", reason)
    return {"security.protocol": "SASL_SSL", **roles[role]}


def checked_config(config: Mapping[str, str]) -> None:
    """Raises WireError for a connector configuration without a class."""
    if not config.get(CLASS):
        raise bad_member("connectorConfiguration", f"{CLASS} is required.")


def log_delivery(body: Mapping[str, Any] | None) -> LogDelivery | None:
    """Returns a connector's log delivery. Raises WireError for a delivery that is enabled without its target."""
    if body is None:
        return None
    targets = body["workerLogDelivery"]
    for name, target in LOG_TARGETS.items():
        if targets.get(name, {}).get("enabled") and not targets[name].get(target):
            raise bad_member(f"logDelivery.workerLogDelivery.{name}.{target}", "It is required where enabled is true.")
    message = LogDelivery()
    if (file := targets.get("cloudWatchLogs")) is not None:
        message.file.enabled, message.file.group = file["enabled"], file.get("logGroup", "").strip("/")
    if (topic := targets.get("firehose")) is not None:
        message.kafka.enabled, message.kafka.topic = topic["enabled"], topic.get("deliveryStream", "")
    if (bucket := targets.get("s3")) is not None:
        message.s3.enabled, message.s3.bucket, message.s3.prefix = (
            bucket["enabled"], bucket.get("bucket", ""), bucket.get("prefix", ""),
        )  # fmt: skip
    return message if targets else None


def document(arn: Arn, body: Mapping[str, Any], capacity: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the document to store for a create: the members that are returned as they were sent."""
    stored = {"networkType": "IPV4", **body, "capacity": capacity, "region": arn.region}
    if not body.get("logDelivery", {}).get("workerLogDelivery"):
        stored.pop("logDelivery", None)
    return {name: stored[name] for name in (*ECHOED, "region") if name in stored}


def arn_of(connector: DedicatedConnector) -> Arn:
    """Returns the ARN of a connector."""
    return kept_arn(arns.CONNECTOR, connector.spec, connector.name)


def state_of(connector: DedicatedConnector) -> str:
    """Returns the state of a connector; both APIs use the same words."""
    return word(DedicatedConnectorState, connector.status.state)


def summary(connector: DedicatedConnector) -> dict[str, Any]:
    """Returns a connector as in a list."""
    stored = document_of(connector.spec.extra)
    return present(
        connectorArn=str(arn_of(connector)),
        connectorName=connector.spec.connector,
        connectorDescription=connector.spec.description,
        connectorState=state_of(connector),
        creationTime=iso(connector.create_time),
        currentVersion=connector.status.version,
        **{name: stored.get(name) for name in ECHOED},
    )


def description(connector: DedicatedConnector) -> dict[str, Any]:
    """Returns the whole description of a connector, with its configuration as it was sent."""
    return (
        summary(connector)
        | present(stateDescription=_state_description(connector))
        | {"connectorConfiguration": dict(connector.spec.config)}
    )


def _state_description(connector: DedicatedConnector) -> dict[str, str] | None:
    """Returns why a connector has failed; else which of its logs cannot be delivered, since that fails no connector."""
    status = connector.status
    if status.code:
        return {"code": status.code, "message": status.message}
    if not status.log_problems:
        return None
    said = (
        f"{LOG_MEMBERS.get(problem.target, problem.target)}: {problem.stream}: {problem.message} "
        f"(since {iso(problem.since)})"
        for problem in status.log_problems
    )
    return {"code": LOGS_NOT_DELIVERED, "message": "Logs are not delivered: " + "; ".join(said)}


def restarts_tasks(version: str) -> bool:
    """Tells whether a version of Kafka Connect can restart only failed tasks."""
    match = _VERSION.match(version)
    return match is not None and (int(match[1]), int(match[2])) >= RESTARTS_TASKS_FROM
