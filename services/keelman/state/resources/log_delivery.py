"""Translates log delivery between the model and the wire, and checks whether this installation can do it."""

from __future__ import annotations

import re

from keelman.api.connect.v1 import log_delivery_pb2 as pb
from keelman.api.node.v1 import workload_pb2
from keelman.connect.policy.topics import InternalTopics
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.log_delivery import NO_TARGETS, LogDelivery, LogTargets
from keelman.model.workload import WorkloadStatus
from keelman.rpc.mapping import message_of, value_of

LEGAL_BUCKETS = "empty, the URL of an S3 server (http(s)://host:port), or the absolute path of a folder"
_INTERNAL = InternalTopics({})
_URL = re.compile(r"https?://[^/\s]+/?")


def checked_buckets(setting: str, value: str) -> str:
    """Returns the setting of the place of buckets, checked. Raises InvalidArgument."""
    if value and not value.startswith("/") and not _URL.fullmatch(value):
        raise InvalidArgument.of(setting, value, LEGAL_BUCKETS)
    return value.rstrip("/") if len(value) > 1 else value


def check_topic(field: str, log_delivery: LogDelivery | None) -> None:
    """Raises InvalidArgument for a delivery to a topic of Kafka, of keelman or of workers' storage."""
    topic = log_delivery.kafka.topic if log_delivery is not None and log_delivery.kafka is not None else ""
    if _INTERNAL.has(topic):
        legal = "a topic that is not internal: none of Kafka's, of keelman's and of workers' storage"
        raise InvalidArgument.of(f"{field}.kafka.topic", topic, legal)


def check_buckets(field: str, log_delivery: LogDelivery | None, buckets: str) -> None:
    """Raises FailedPrecondition for a delivery to a bucket if the installation has none."""
    if log_delivery is not None and log_delivery.s3 is not None and log_delivery.s3.enabled and not buckets:
        raise FailedPrecondition(
            f"{field}.s3: logs cannot be delivered to bucket {log_delivery.s3.bucket!r}: this installation has no "
            "buckets: set state.buckets to the URL of an S3 server or to a folder",
            reason="NO_BUCKETS",
            metadata={"setting": "state.buckets"},
        )


def delivery_message(log_delivery: LogDelivery | None) -> pb.LogDelivery | None:
    """Returns the message of a log delivery; None if there is none."""
    return None if log_delivery is None else message_of(pb.LogDelivery, log_delivery)


def delivery_of(log_delivery: pb.LogDelivery) -> LogDelivery | None:
    """Returns the log delivery of a message; None for an absent or empty one."""
    delivery = value_of(LogDelivery, log_delivery)
    return None if delivery == LogDelivery() else delivery


def targets_message(targets: LogTargets) -> workload_pb2.LogTargets | None:
    """Returns the message of a log's delivery targets; None if there are none."""
    return None if targets == NO_TARGETS else message_of(workload_pb2.LogTargets, targets)


def problem_messages(*statuses: WorkloadStatus | None) -> list[workload_pb2.LogProblem]:
    """Returns the problems of log delivery, each stream of a target once."""
    problems = {
        (problem.stream, problem.target): problem for status in statuses if status for problem in status.log_problems
    }
    return [message_of(workload_pb2.LogProblem, problem) for _, problem in sorted(problems.items())]
