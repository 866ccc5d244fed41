"""Kafka's error codes: their numbers, and whether an error passes."""

import pytest

from keelman.kafka.error_codes import CODES, name_of, passes


def test_error_codes_have_kafkas_numbers() -> None:
    assert CODES["OUT_OF_ORDER_SEQUENCE_NUMBER"] == 45
    assert CODES["MEMBER_ID_REQUIRED"] == 79
    assert CODES["PRODUCER_FENCED"] == 90
    assert CODES["TRANSACTION_ABORTABLE"] == 120
    assert name_of(999) == "ERROR_999"


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
