"""The targets to which a worker cluster's logs are delivered: files, objects of a bucket, records of a topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileLogDelivery:
    """Files below a folder of each node's log root."""

    enabled: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class S3LogDelivery:
    """Compressed objects."""

    enabled: bool = False
    bucket: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class KafkaLogDelivery:
    """Records of a topic of the cluster's own brokers."""

    enabled: bool = False
    topic: str = ""


@dataclass(frozen=True, slots=True)
class LogDelivery:
    """The log delivery that a user wants. A part that is None was not given; a part that is not enabled is only stored.
    `name` is the folder of all of them, empty for the worker cluster's name."""

    name: str = ""
    file: FileLogDelivery | None = None
    s3: S3LogDelivery | None = None
    kafka: KafkaLogDelivery | None = None


@dataclass(frozen=True, slots=True)
class LogTargets:
    """The targets to which an agent delivers a worker's log: only those that are enabled, the rest is empty. `buckets`
    is the URL of an S3 server or the path of a folder."""

    name: str = ""
    file_group: str = ""
    bucket: str = ""
    prefix: str = ""
    buckets: str = ""
    region: str = ""
    topic: str = ""


NO_TARGETS = LogTargets()


def targets_of(log_delivery: LogDelivery | None, cluster: str, buckets: str, region: str) -> LogTargets:
    """Returns the part of a cluster's log delivery that is sent to agents."""
    if log_delivery is None:
        return NO_TARGETS
    file = log_delivery.file.group if log_delivery.file and log_delivery.file.enabled else ""
    topic = log_delivery.kafka.topic if log_delivery.kafka and log_delivery.kafka.enabled else ""
    s3 = log_delivery.s3 if log_delivery.s3 and log_delivery.s3.enabled else S3LogDelivery()
    if not (file or topic or s3.bucket):
        return NO_TARGETS
    where = (buckets, region) if s3.bucket else ("", "")
    return LogTargets(log_delivery.name or cluster, file, s3.bucket, s3.prefix, *where, topic)
