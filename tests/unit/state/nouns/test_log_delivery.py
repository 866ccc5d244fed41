"""Log delivery: what is refused, and what agents are told."""

from __future__ import annotations

import pytest

from keelman.api.connect.v1.log_delivery_pb2 import FileLogDelivery, KafkaLogDelivery, S3LogDelivery
from keelman.api.connect.v1.log_delivery_pb2 import LogDelivery as Message
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.log_checks import check_log_delivery
from keelman.model.log_delivery import NO_TARGETS, LogTargets, targets_of
from keelman.state.nouns.log_delivery import (
    check_buckets,
    checked_buckets,
    delivery_message,
    delivery_of,
    targets_message,
)

WHOLE = Message(
    name="orders",
    file=FileLogDelivery(enabled=True, group="/aws/connect"),
    s3=S3LogDelivery(enabled=True, bucket="our-logs", prefix="a/b/"),
    kafka=KafkaLogDelivery(enabled=True, topic="logs"),
)


def test_what_is_given_comes_back_and_agents_are_told_what_is_enabled() -> None:
    found = delivery_of(WHOLE)
    assert found is not None
    assert delivery_message(found) == WHOLE
    check_log_delivery("spec.log_delivery", found)
    told = targets_of(found, "demo", "https://s3", "eu-1")
    assert told == LogTargets("orders", "/aws/connect", "our-logs", "a/b/", "https://s3", "eu-1", "logs")
    assert targets_message(told) is not None
    assert targets_message(NO_TARGETS) is None


def test_what_is_not_enabled_is_kept_and_nobody_is_told() -> None:
    off = Message(file=FileLogDelivery(group="x"), s3=S3LogDelivery(), kafka=KafkaLogDelivery(topic="logs"))
    found = delivery_of(off)
    assert found is not None
    assert delivery_message(found) == off
    check_log_delivery("spec.log_delivery", found)
    check_buckets("spec.log_delivery", found, "")
    assert targets_of(found, "demo", "https://s3", "eu-1") == NO_TARGETS
    assert delivery_of(Message()) is None
    assert targets_of(None, "demo", "https://s3", "") == NO_TARGETS
    only = delivery_of(Message(kafka=KafkaLogDelivery(enabled=True, topic="logs")))
    assert targets_of(only, "demo", "https://s3", "eu-1") == LogTargets(name="demo", topic="logs")


@pytest.mark.parametrize(
    ("wrong", "said"),
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
def test_what_is_refused(wrong: Message, said: str) -> None:
    found = delivery_of(wrong)
    assert found is not None
    with pytest.raises(InvalidArgument) as error:
        check_log_delivery("spec.log_delivery", found)
    assert said in error.value.message


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
