"""The bytes of Metadata 12 and OffsetForLeaderEpoch 4, as Kafka's message descriptions have them."""

import struct
from io import BytesIO

import pytest

from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.leader_epochs import (
    AskedEpoch,
    AskEpochEnds,
    AskMetadata,
    AskOffsets,
    BrokerAddress,
    EpochEnd,
    EpochEnds,
    FoundOffset,
    Leader,
    MetadataAnswer,
    Offsets,
    passes,
)


def test_metadata_is_asked_by_name_and_makes_no_topic() -> None:
    none = bytes(16)
    assert AskMetadata(["t", "ü"]).encode() == b"\3" + none + b"\2t\0" + none + b"\3" + "ü".encode() + b"\0" + b"\0\0\0"


def test_metadata_answers() -> None:
    def numbers(*values: int) -> bytes:
        return bytes([len(values) + 1]) + struct.pack(f">{len(values)}i", *values)

    answer = b"".join(
        [
            struct.pack(">i", 0) + b"\3",
            struct.pack(">i", 1) + b"\2h" + struct.pack(">i", 9092) + b"\3r1\0",
            struct.pack(">i", 2) + b"\2i" + struct.pack(">i", 9093) + b"\0\0",
            b"\4abc" + struct.pack(">i", 2) + b"\3",
            struct.pack(">h", 0) + b"\2t" + bytes(range(16)) + b"\1\3",
            struct.pack(">hiii", 0, 0, 2, 7) + numbers(1, 2) + numbers(2) + numbers(1) + b"\0",
            struct.pack(">hiii", 5, 1, -1, 4) + numbers() + numbers() + numbers() + b"\0",
            struct.pack(">i", -(1 << 31)) + b"\0",
            struct.pack(">h", 3) + b"\2u" + bytes(16) + b"\0\1" + struct.pack(">i", -(1 << 31)) + b"\0",
            b"\0",
        ]
    )
    told = MetadataAnswer.decode(BytesIO(answer))
    assert told.brokers == (BrokerAddress(1, "h", 9092, "r1"), BrokerAddress(2, "i", 9093, None))
    assert told.controller == 2
    topic, other = told.topics["t"], told.topics["u"]
    assert (topic.id, topic.code, topic.internal) == ("AAECAwQFBgcICQoLDA0ODw", 0, True)
    assert topic.partitions == {0: Leader(2, 7, 0, (1, 2), (2,)), 1: Leader(-1, 4, 5)}
    assert (other.id, other.code, other.partitions) == ("", CODES["UNKNOWN_TOPIC_OR_PARTITION"], {})


def test_ends_of_epochs() -> None:
    asked = AskEpochEnds({("t", 0): AskedEpoch(3, 5), ("u", 2): AskedEpoch(1, -1), ("t", 1): AskedEpoch(4, 4)})
    assert asked.encode() == b"".join(
        [
            struct.pack(">i", -1) + b"\3",
            b"\2t\3" + struct.pack(">iii", 0, 5, 3) + b"\0" + struct.pack(">iii", 1, 4, 4) + b"\0\0",
            b"\2u\2" + struct.pack(">iii", 2, -1, 1) + b"\0\0\0",
        ]
    )
    answer = b"".join(
        [
            struct.pack(">i", 0) + b"\2\2t\3",
            struct.pack(">hiiq", 0, 0, 2, 1 << 40) + b"\0",
            struct.pack(">hiiq", 74, 1, -1, -1) + b"\0",
            b"\0\0",
        ]
    )
    told = EpochEnds.decode(BytesIO(answer))
    assert told.parts == {("t", 0): EpochEnd(2, 1 << 40), ("t", 1): EpochEnd(-1, -1, CODES["FENCED_LEADER_EPOCH"])}


def test_offsets_are_asked_of_who_leads_in_an_epoch() -> None:
    asked = AskOffsets(1, {("t", 3): (-2, 5)})
    assert asked.encode() == struct.pack(">ib", -1, 1) + b"\2\2t\2" + struct.pack(">iiq", 3, 5, -2) + b"\0\0\0"
    answer = struct.pack(">i", 0) + b"\2\2t\2" + struct.pack(">ihqqi", 3, 0, -1, 77, 5) + b"\0\0\0"
    assert Offsets.decode(BytesIO(answer)).parts == {("t", 3): FoundOffset(77)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NONE", False),
        ("FENCED_LEADER_EPOCH", True),
        ("UNKNOWN_LEADER_EPOCH", True),
        ("NOT_LEADER_OR_FOLLOWER", True),
        ("LEADER_NOT_AVAILABLE", True),
        ("TOPIC_AUTHORIZATION_FAILED", False),
        ("OFFSET_OUT_OF_RANGE", False),
    ],
)
def test_what_another_leader_may_answer_otherwise(name: str, expected: bool) -> None:
    assert passes(CODES[name]) is expected
