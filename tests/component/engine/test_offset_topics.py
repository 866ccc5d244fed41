"""The topics of a source's offsets: its own and the worker's, and the effect of a refusal by one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from keelman.api.copy.v1 import ticket_pb2
from support.copying.fed_source import PARTITION, Bench, visible
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = pytest.mark.component


@pytest.mark.parametrize("delivery", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_a_connectors_own_offset_topic_is_made_and_the_workers_follows(
    bench: Callable[..., Bench], delivery: str
) -> None:
    single_bench = bench()
    own = f"{single_bench.name}-offsets"
    guarantee = ticket_pb2.DeliveryGuarantee.Value(f"DELIVERY_GUARANTEE_{delivery}")
    fields = {"offset_topic": own, "worker_offset_topic": "test-offsets", "delivery": guarantee}
    fields["worker_config"] = {"offset.storage.partitions": "7", "offset.storage.segment.bytes": "1048576"}
    single_bench.feed.put(b"a")
    run = single_bench.run(**fields)
    run.until_records(1)
    assert single_bench.offset(own) == b'{"n":1}'
    until(lambda: single_bench.offset() == b'{"n":1}', "the worker's topic follows")
    resource = ConfigResource(ResourceType.TOPIC, own)
    admin = AdminClient({"bootstrap.servers": single_bench.brokers.bootstrap})
    settings = admin.describe_configs([resource])[resource].result(300)
    assert (settings["cleanup.policy"].value, settings["segment.bytes"].value) == ("compact", "1048576")
    assert len(admin.list_topics(own, 60).topics[own].partitions) == 7
    single_bench.feed.put(b"b", offsets=((PARTITION, None),))
    run.until_records(2)
    assert single_bench.offset(own) is None
    assert single_bench.offset() is None
    run.drain()


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_connectors_own_offset_topic_that_brokers_delete_from_is_refused(
    bench: Callable[..., Bench], policy: str
) -> None:
    single_bench = bench()
    own = f"{single_bench.name}-offsets"
    create_topic(single_bench.brokers.bootstrap, own, 1, **{"cleanup.policy": policy})
    single_bench.feed.put(b"a")
    failed = single_bench.run(offset_topic=own, worker_offset_topic="test-offsets").until_state("FAILED")
    assert failed.message.startswith(f"offsets.storage.topic: topic {own} has cleanup.policy=")
    assert not failed.retriable


def test_a_worker_topic_that_cannot_be_written_is_no_failure(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    single_bench.config |= {
        f"{k}.override.bootstrap.servers": single_bench.brokers.bootstrap for k in ("producer", "admin")
    }
    single_bench.feed.put(b"a")
    own = f"{single_bench.name}-offsets"
    create_topic(single_bench.brokers.bootstrap, own, 1, **{"cleanup.policy": "compact"})
    elsewhere = {"producer.bootstrap.servers": "127.0.0.1:9"}
    run = single_bench.run(offset_topic=own, worker_offset_topic="test-offsets", worker_config=elsewhere)
    run.until_records(1)
    assert single_bench.offset(own) == b'{"n":1}'
    assert run.drain().reason == "DRAINED"


def test_a_task_may_not_write_to_its_own_offset_topic(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    single_bench.feed.topic = "test-offsets"
    single_bench.feed.put(b"a")
    failed = single_bench.run().until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert "may not produce to their own offsets topics" in failed.message


def test_offsets_are_written_again_after_a_fence_though_nothing_new_is_read(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    single_bench.feed.put(b"a")
    run = single_bench.run()
    run.until_records(1)
    run.drain()
    offsets = visible(single_bench.brokers.bootstrap, "test-offsets", "read_committed")
    again = single_bench.run()
    until(lambda: single_bench.feed.commits == 2, "a commit without records")
    again.drain()
    assert visible(single_bench.brokers.bootstrap, "test-offsets", "read_committed").count(b'{"n":1}') > offsets.count(
        b'{"n":1}'
    )
