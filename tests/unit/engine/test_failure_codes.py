"""How a refused record batch affects its task."""

import pytest

from keelman.engine.failure import judge
from keelman.kafka.batches.produce_failure import NETWORK, ProduceFailure
from keelman.kafka.error_codes import CODES
from keelman.model.errors import Unavailable


@pytest.mark.parametrize(
    ("name", "reason", "retriable"),
    [
        ("PRODUCER_FENCED", "FENCED", True),
        ("INVALID_PRODUCER_EPOCH", "FENCED", True),
        ("MESSAGE_TOO_LARGE", "TASK_FAILED", False),
        ("INVALID_RECORD", "TASK_FAILED", False),
        ("INVALID_TIMESTAMP", "TASK_FAILED", False),
        ("TOPIC_AUTHORIZATION_FAILED", "NOT_ALLOWED", False),
        ("UNSUPPORTED_COMPRESSION_TYPE", "TASK_FAILED", False),
        ("UNKNOWN_SERVER_ERROR", "TASK_FAILED", True),
        ("NOT_ENOUGH_REPLICAS", "BROKER_LOST", True),
        ("UNSUPPORTED_VERSION", "BROKER_LOST", True),  # brokers whose features were lowered: the next producer adapts
    ],
)
def test_a_code_says_whether_a_new_ticket_helps(name: str, reason: str, retriable: bool) -> None:
    verdict = judge(ProduceFailure(CODES[name], "topic-0: why"))
    assert (verdict.reason, verdict.retriable) == (reason, retriable)
    assert verdict.message == f"{name}: topic-0: why"
    assert verdict.trace.startswith("org.apache.kafka.common.KafkaException: ")


def test_problems_with_connections_pass() -> None:
    verdict = judge(ProduceFailure(NETWORK, "gone"))
    assert (verdict.reason, verdict.retriable, verdict.message) == ("BROKER_LOST", True, "NETWORK: gone")
    assert judge(Unavailable("no broker answers")).reason == "BROKER_LOST"


def test_a_transaction_that_is_too_long_for_the_brokers_is_told_with_the_keys_that_shorten_it() -> None:
    verdict = judge(
        ProduceFailure(CODES["INVALID_TRANSACTION_TIMEOUT"], "10 s is more than transaction.max.timeout.ms")
    )
    assert (verdict.reason, verdict.retriable) == ("CONFIG_INVALID", False)
    assert "transaction.max.timeout.ms" in verdict.message
    assert "transaction.boundary.interval.ms" in verdict.message
    assert verdict.message in verdict.trace
