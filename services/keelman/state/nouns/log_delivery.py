"""Log delivery on the wire, and whether this installation can do it."""

from __future__ import annotations

import dataclasses
import re

from keelman.api.connect.v1 import log_delivery_pb2 as pb
from keelman.api.node.v1 import workload_pb2
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.log_delivery import (
    NO_TARGETS,
    FileLogDelivery,
    KafkaLogDelivery,
    LogDelivery,
    LogTargets,
    S3LogDelivery,
)

LEGAL_BUCKETS = "empty, the URL of an S3 server (http(s)://host:port), or the absolute path of a folder"
_URL = re.compile(r"https?://[^/\s]+/?")


def checked_buckets(setting: str, value: str) -> str:
    """The setting that says where buckets are. Raises InvalidArgument."""
    if value and not value.startswith("/") and not _URL.fullmatch(value):
        raise InvalidArgument.of(setting, value, LEGAL_BUCKETS)
    return value.rstrip("/") if len(value) > 1 else value


def check_buckets(field: str, wanted: LogDelivery | None, buckets: str) -> None:
    """Raises FailedPrecondition for a delivery to a bucket where there are none."""
    if wanted is not None and wanted.s3 is not None and wanted.s3.enabled and not buckets:
        raise FailedPrecondition(
            f"{field}.s3: logs cannot be delivered to bucket {wanted.s3.bucket!r}: this installation has no buckets: "
            "set state.buckets to the URL of an S3 server or to a folder",
            reason="NO_BUCKETS",
            metadata={"setting": "state.buckets"},
        )


def delivery_message(wanted: LogDelivery | None) -> pb.LogDelivery | None:
    """A log delivery on the wire; None where there is none."""
    if wanted is None:
        return None
    return pb.LogDelivery(
        name=wanted.name,
        file=None if wanted.file is None else pb.FileLogDelivery(**dataclasses.asdict(wanted.file)),
        s3=None if wanted.s3 is None else pb.S3LogDelivery(**dataclasses.asdict(wanted.s3)),
        kafka=None if wanted.kafka is None else pb.KafkaLogDelivery(**dataclasses.asdict(wanted.kafka)),
    )


def delivery_of(given: pb.LogDelivery) -> LogDelivery | None:
    """The log delivery of a message; None for an absent or empty one."""
    found = LogDelivery(
        name=given.name,
        file=FileLogDelivery(given.file.enabled, given.file.group) if given.HasField("file") else None,
        s3=S3LogDelivery(given.s3.enabled, given.s3.bucket, given.s3.prefix) if given.HasField("s3") else None,
        kafka=KafkaLogDelivery(given.kafka.enabled, given.kafka.topic) if given.HasField("kafka") else None,
    )
    return None if found == LogDelivery() else found


def targets_message(targets: LogTargets) -> workload_pb2.LogTargets | None:
    """Where an agent delivers a log; None for nowhere."""
    return None if targets == NO_TARGETS else workload_pb2.LogTargets(**dataclasses.asdict(targets))
