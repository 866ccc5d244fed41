"""Decides which of Kafka's answers end a producer, and after which ones it tries again."""

from __future__ import annotations

from keelman.kafka.error_codes import CODES, name_of
from keelman.model.errors import Unavailable

NETWORK = -(1 << 16)
"""The code of a problem that is no broker's answer: outside of the 16 bits of such codes. A broker's -1 is
UNKNOWN_SERVER_ERROR, which is not retriable."""

CORRUPT = CODES["CORRUPT_MESSAGE"]
DUPLICATE = CODES["DUPLICATE_SEQUENCE_NUMBER"]
OUT_OF_ORDER = CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"]
CONCURRENT = CODES["CONCURRENT_TRANSACTIONS"]
LEADER_NOT_AVAILABLE = CODES["LEADER_NOT_AVAILABLE"]
UNKNOWN_TOPIC = CODES["UNKNOWN_TOPIC_OR_PARTITION"]
TOPIC_DENIED = CODES["TOPIC_AUTHORIZATION_FAILED"]
TOO_LONG = CODES["INVALID_TRANSACTION_TIMEOUT"]
ID_DENIED = CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]
TOO_LARGE = frozenset({CODES["MESSAGE_TOO_LARGE"], CODES["RECORD_LIST_TOO_LARGE"]})
UNSUPPORTED = CODES["UNSUPPORTED_VERSION"]

COORDINATOR_MOVED = frozenset(
    CODES[name] for name in ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")
)
LEADER_MOVED = frozenset(
    CODES[name]
    for name in (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "REPLICA_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
    )
)
AGAIN = (
    LEADER_MOVED
    | COORDINATOR_MOVED
    | {NETWORK, CONCURRENT}
    | {
        CODES[name]
        for name in (
            "CORRUPT_MESSAGE",  # damaged in transit; a batch that was damaged before is given up
            "REQUEST_TIMED_OUT",
            "BROKER_NOT_AVAILABLE",
            "NETWORK_EXCEPTION",
            "NOT_ENOUGH_REPLICAS",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "THROTTLING_QUOTA_EXCEEDED",
        )
    }
)
"""Transient errors: https://kafka.apache.org/protocol.html#protocol_error_codes, column "retriable"."""

SHUT_OUT = frozenset(
    CODES[name]
    for name in (
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_ID_MAPPING",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTION_COORDINATOR_FENCED",
    )
)
"""After these the producer may not even abort."""


class ProduceFailure(Unavailable):
    """An error that ends its producer. `code` is Kafka's error code or NETWORK, `name` the code's name."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.name = "NETWORK" if code == NETWORK else name_of(code)
        super().__init__(f"{self.name}: {message}" if message else self.name, reason=self.name)


def delay(tries: int, first: float) -> float:
    """Returns the seconds before the next try, after `tries` of them: doubling up to a fifth of a second."""
    return min(0.2, first * 2.0 ** min(tries, 16))


def first_delay(code: int) -> float:
    """Returns the seconds before the second try. The previous transaction's markers take only a millisecond or two."""
    return 0.001 if code == CONCURRENT else 0.005
