"""Log delivery: refusals, and the assignments that agents get."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keelman.api.connect.v1.log_delivery_pb2 import FileLogDelivery, KafkaLogDelivery, S3LogDelivery
from keelman.api.connect.v1.log_delivery_pb2 import LogDelivery as Message
from keelman.api.node.v1.session_service_pb2 import BucketKeys
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.log_delivery import NO_TARGETS, LogTargets, targets_of
from keelman.model.rules.log_checks import check_log_delivery
from keelman.model.workload import Goal, LogProblem, ProcessState, WorkerSpec, Workload, WorkloadStatus
from keelman.state.nouns import workload
from keelman.state.nouns.node_secrets import secrets_of
from keelman.state.resources.log_delivery import (
    check_buckets,
    checked_buckets,
    delivery_message,
    delivery_of,
    problem_messages,
    targets_message,
)
from support.state.snapshots import snapshot_of

WHOLE = Message(
    name="orders",
    file=FileLogDelivery(enabled=True, group="/aws/connect"),
    s3=S3LogDelivery(enabled=True, bucket="our-logs", prefix="a/b/"),
    kafka=KafkaLogDelivery(enabled=True, topic="logs"),
)


def test_what_is_given_comes_back_and_agents_are_told_what_is_enabled() -> None:
    delivery = delivery_of(WHOLE)
    assert delivery is not None
    assert delivery_message(delivery) == WHOLE
    check_log_delivery("spec.log_delivery", delivery)
    targets = targets_of(delivery, "demo", "https://s3", "eu-1")
    assert targets == LogTargets("orders", "/aws/connect", "our-logs", "a/b/", "https://s3", "eu-1", "logs")
    assert targets_message(targets) is not None
    assert targets_message(NO_TARGETS) is None


def test_what_is_not_enabled_is_kept_and_nobody_is_told() -> None:
    off = Message(file=FileLogDelivery(group="x"), s3=S3LogDelivery(), kafka=KafkaLogDelivery(topic="logs"))
    delivery = delivery_of(off)
    assert delivery is not None
    assert delivery_message(delivery) == off
    check_log_delivery("spec.log_delivery", delivery)
    check_buckets("spec.log_delivery", delivery, "")
    assert targets_of(delivery, "demo", "https://s3", "eu-1") == NO_TARGETS
    assert delivery_of(Message()) is None
    assert targets_of(None, "demo", "https://s3", "") == NO_TARGETS
    only = delivery_of(Message(kafka=KafkaLogDelivery(enabled=True, topic="logs")))
    assert targets_of(only, "demo", "https://s3", "eu-1") == LogTargets(name="demo", topic="logs")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Message(file=FileLogDelivery(enabled=True)), "spec.log_delivery.file.group: '' is not legal: 1 to 512"),
        (Message(file=FileLogDelivery(enabled=True, group="a/../b")), "spec.log_delivery.file.group: 'a/../b'"),
        (Message(file=FileLogDelivery(group="a//b")), "without empty folders"),
        (Message(file=FileLogDelivery(group="/")), "spec.log_delivery.file.group: '/'"),
        (Message(file=FileLogDelivery(group="ä")), "spec.log_delivery.file.group"),
        (Message(file=FileLogDelivery(group="x" * 513)), "spec.log_delivery.file.group"),
        (Message(s3=S3LogDelivery(enabled=True)), "spec.log_delivery.s3.bucket: '' is not legal: 3 to 63"),
        (Message(s3=S3LogDelivery(bucket="A")), "spec.log_delivery.s3.bucket: 'A'"),
        (Message(s3=S3LogDelivery(enabled=True, bucket="abc", prefix="../x")), "spec.log_delivery.s3.prefix: '../x'"),
        (Message(s3=S3LogDelivery(enabled=True, bucket="abc", prefix="a b")), "spec.log_delivery.s3.prefix: 'a b'"),
        (Message(kafka=KafkaLogDelivery(enabled=True)), "spec.log_delivery.kafka.topic: ''"),
        (Message(kafka=KafkaLogDelivery(enabled=True, topic="a b")), "spec.log_delivery.kafka.topic: 'a b'"),
        (Message(name="a/b"), "spec.log_delivery.name: 'a/b' is not legal: 1 to 128"),
        (Message(name=".."), "spec.log_delivery.name: '..'"),
    ],
)
def test_what_is_refused(wrong: Message, message: str) -> None:
    delivery = delivery_of(wrong)
    assert delivery is not None
    with pytest.raises(InvalidArgument) as error:
        check_log_delivery("spec.log_delivery", delivery)
    assert message in error.value.message


def test_a_bucket_where_there_are_none() -> None:
    with pytest.raises(FailedPrecondition) as error:
        check_buckets("spec.log_delivery", delivery_of(WHOLE), "")
    assert error.value.reason == "NO_BUCKETS"
    assert "state.buckets" in error.value.message
    check_buckets("spec.log_delivery", delivery_of(WHOLE), "/srv/buckets")
    check_buckets("spec.log_delivery", None, "")


def test_where_buckets_may_be() -> None:
    for legal in ("", "/srv/buckets", "https://s3.eu-west-1.amazonaws.com", "http://127.0.0.1:8333/"):
        assert checked_buckets("state.buckets", legal) == legal.rstrip("/")
    for wrong in ("srv", "s3://x", "http://", "ftp://x"):
        with pytest.raises(InvalidArgument):
            checked_buckets("state.buckets", wrong)


def test_what_is_not_delivered_is_kept_and_told_once() -> None:
    since = datetime(2026, 11, 25, 21, tzinfo=UTC)
    slots = LogProblem("demo-slots-n1", "kafka", "no topic", since)
    status = WorkloadStatus(
        ProcessState.RUNNING, 1, log_problems=(LogProblem("demo-0", "s3", "no bucket", since), slots)
    )
    worker = Workload(
        "worker/demo/0", "n1", 1, Goal.RUNNING, WorkerSpec("demo", "127.0.0.1", 8083, {}, ""), status=status
    )
    row = workload.NOUN.to_row(worker)
    assert workload.NOUN.from_row(row["name"], row["revision"], row["payload"]) == worker
    before = {key: value for key, value in row["payload"]["status"].items() if key != "log_problems"}
    actual_status = workload.NOUN.from_row(row["name"], row["revision"], row["payload"] | {"status": before}).status
    assert actual_status is not None
    assert actual_status.log_problems == ()
    assert workload.status_of(workload.status_message(status)) == status
    other = WorkloadStatus(ProcessState.RUNNING, 1, log_problems=(slots,))
    messages = problem_messages(status, None, other)
    assert [(problem.stream, problem.target, problem.since.ToDatetime(UTC)) for problem in messages] == [
        ("demo-0", "s3", since), ("demo-slots-n1", "kafka", since),
    ]  # fmt: skip


def test_keys_go_to_nodes_that_deliver_to_this_server() -> None:
    keys = BucketKeys(buckets="http://s3:1", access_key_id="id", secret_access_key="secret")

    def given(node: str, buckets: str, bucket: str, bucket_keys: BucketKeys | None = keys) -> bool:
        spec = WorkerSpec(
            "demo", "127.0.0.1", 8083, {}, "", log_targets=LogTargets("demo", bucket=bucket, buckets=buckets)
        )
        worker = Workload("worker/demo/0", "n1", 1, Goal.RUNNING, spec)
        return secrets_of(node, snapshot_of(workloads={worker.name: worker}), bucket_keys).HasField("bucket_keys")

    assert given("n1", "http://s3:1", "logs")
    assert not given("n2", "http://s3:1", "logs")
    assert not given("n1", "http://s3:2", "logs")
    assert not given("n1", "http://s3:1", "")
    assert not given("n1", "http://s3:1", "logs", None)
