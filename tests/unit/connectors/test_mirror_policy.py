"""Names and choice of mirrored topics: MirrorMaker 2's policies and filters."""

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.connectors.mirror.config import source_keys
from keelman.connectors.mirror.policy import IDENTITY_POLICY, IdentityPolicy, ReplicationPolicy, TopicChoice, matcher


def choice(**keys: str) -> TopicChoice:
    values = {key.replace("__", "-").replace("_", "."): value for key, value in keys.items()}
    return TopicChoice(source_keys().parse({"source.cluster.alias": "a", "target.cluster.alias": "b", **values}))


def test_default_policy_names_copies_after_their_cluster() -> None:
    policy = ReplicationPolicy()
    assert policy.remote_topic("us-west", "orders") == "us-west.orders"
    assert policy.source_of("us-west.orders") == "us-west"
    assert policy.source_of("orders") is None
    assert policy.source_of("orders.") is None  # as Java splits
    assert policy.upstream_topic("us-west.eu.orders") == "eu.orders"
    assert policy.original_topic("us-west.eu.orders") == "orders"
    assert policy.offset_syncs_topic("b") == "mm2-offset-syncs.b.internal"


def test_a_separator_also_stands_in_internal_names_unless_told_otherwise() -> None:
    assert ReplicationPolicy("__").offset_syncs_topic("b") == "mm2-offset-syncs__b__internal"
    dots = ReplicationPolicy("__", internal_separator=False)
    assert dots.offset_syncs_topic("b") == "mm2-offset-syncs.b.internal"
    assert dots.remote_topic("a", "orders") == "a__orders"
    assert dots.upstream_topic("a__orders") == "orders"


def test_identity_policy_keeps_names_but_for_heartbeats() -> None:
    policy = IdentityPolicy("a")
    assert policy.remote_topic("a", "orders") == "orders"
    assert policy.remote_topic("a", "heartbeats") == "a.heartbeats"
    assert policy.source_of("orders") == "a"
    assert policy.source_of("heartbeats") is None
    assert policy.upstream_topic("orders") == "orders"
    assert policy.original_topic("x.heartbeats") == "heartbeats"


def test_topics_of_kafka_connect_and_mirroring_are_never_mirrored() -> None:
    chosen = choice(topics=".*", topics_exclude="")
    for internal in ("__consumer_offsets", ".hidden", "mm2-offset-syncs.b.internal", "connect-internal", "x.internal"):
        assert not chosen.wanted(internal), internal
    assert chosen.wanted("orders")


def test_cycles_are_seen_through_any_number_of_hops() -> None:
    chosen = choice(topics=".*")
    assert not chosen.wanted("b.orders")
    assert not chosen.wanted("c.b.orders")
    assert chosen.wanted("c.orders")


def test_identity_policy_mirrors_all_but_what_comes_from_the_target() -> None:
    same = choice(topics=".*", replication_policy_class=IDENTITY_POLICY)
    assert same.wanted("orders")
    assert same.wanted("b.orders")  # this policy cannot tell the topic's origin
    assert not same.wanted("b.heartbeats")


def test_includes_and_excludes_are_names_and_patterns_of_whole_names() -> None:
    chosen = choice(topics="orders, test-.*", topics_exclude="test-private.*")
    assert chosen.wanted("orders")
    assert chosen.wanted("test-1")
    assert not chosen.wanted("orders2")
    assert not chosen.wanted("test-private-1")
    assert not choice(topics="").wanted("orders")


def test_heartbeats_are_mirrored_whatever_is_included() -> None:
    assert choice(topics="orders").wanted("heartbeats")
    assert not choice(topics="orders", heartbeats_replication_enabled="false").wanted("heartbeats")


def test_default_excludes() -> None:
    chosen = choice()
    assert not chosen.wanted("orders.replica")
    assert chosen.wanted("orders")


def test_a_pattern_that_is_none_is_refused_with_its_key() -> None:
    with pytest.raises(ValueError, match="orders"):
        matcher(["orders("])
    answer = source_keys().validate({"source.cluster.alias": "a", "topics": "orders("})
    assert [value.name for value in answer.values() if value.errors] == ["topics"]


def test_a_policy_that_we_do_not_have_is_refused() -> None:
    with pytest.raises(ConfigValueError, match=r"replication\.policy\.class"):
        choice(replication_policy_class="com.example.Mine")


@pytest.mark.parametrize("topic", ["demo.connect-configs", "keelman.events.node.v1", "__consumer_offsets"])
def test_internal_topics_are_not_mirrored_though_they_are_named(topic: str) -> None:
    assert not choice(topics=f"{topic},.*", topics_exclude="none").wanted(topic)
    assert choice(topics=f"{topic},.*", topics_exclude="none").wanted("orders")
