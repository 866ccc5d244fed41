"""The bytes of Metadata 12, as Kafka's message descriptions define them."""

import struct
from io import BytesIO

from keelman.kafka.error_codes import CODES
from keelman.kafka.leaders.metadata import AskMetadata, BrokerAddress, Leader, MetadataAnswer


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
    metadata = MetadataAnswer.decode(BytesIO(answer))
    assert metadata.brokers == (BrokerAddress(1, "h", 9092, "r1"), BrokerAddress(2, "i", 9093, None))
    assert metadata.controller == 2
    topic, other = metadata.topics["t"], metadata.topics["u"]
    assert (topic.id, topic.code, topic.internal) == ("AAECAwQFBgcICQoLDA0ODw", 0, True)
    assert topic.partitions == {0: Leader(2, 7, 0, (1, 2), (2,)), 1: Leader(-1, 4, 5)}
    assert (other.id, other.code, other.partitions) == ("", CODES["UNKNOWN_TOPIC_OR_PARTITION"], {})
