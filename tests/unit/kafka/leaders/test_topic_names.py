"""Reading only the names of topics gives the same names as reading the whole answer."""

from __future__ import annotations

from io import BytesIO

from keelman.kafka.leaders.metadata import MetadataAnswer
from keelman.kafka.leaders.topic_names import AskTopicNames, TopicNames
from keelman.kafka.wire.fields import NO_TAGS, compact, varint


def answer(*topics: tuple[str, int]) -> bytes:
    """Metadata 12 with these topics, each of so many partitions on two replicas, and two brokers."""
    broker = b"".join(
        n.to_bytes(4, "big") + compact("h") + (9092).to_bytes(4, "big") + rack + NO_TAGS
        for n, rack in ((1, b"\0"), (2, compact("r")))
    )
    head = bytes(4) + varint(3) + broker + compact("cluster") + (1).to_bytes(4, "big")
    results = [head, varint(len(topics) + 1)]
    for name, count in topics:
        both = varint(3) + (1).to_bytes(4, "big") + (2).to_bytes(4, "big")
        partitions = b"".join(
            bytes(2) + n.to_bytes(4, "big") + (1).to_bytes(4, "big") + (7).to_bytes(4, "big") + both + both + varint(1)
            + NO_TAGS
            for n in range(count)
        )  # fmt: skip
        results.append(bytes(2) + compact(name) + bytes(range(16)) + b"\0" + varint(count + 1) + partitions + bytes(4))
        results.append(NO_TAGS)
    return b"".join([*results, NO_TAGS])


def test_the_same_names_come_out() -> None:
    raw = answer(("a", 3), ("b.é", 0), ("c", 200))
    assert TopicNames.decode(BytesIO(raw)).names == ("a", "b.é", "c")
    assert tuple(MetadataAnswer.decode(BytesIO(raw)).topics) == ("a", "b.é", "c")
    assert TopicNames.decode(BytesIO(answer())).names == ()


def test_all_topics_are_asked_for_and_none_is_made() -> None:
    assert AskTopicNames().encode() == b"\0\0\0\0"
