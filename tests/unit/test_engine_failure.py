"""Why a copy run failed: what the same configuration meets again is told from what passes."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.engine.failure import judge
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable

SASL, TLS = KafkaError._AUTHENTICATION, KafkaError._SSL


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (SASL, "SASL authentication error: Authentication failed: Invalid username or password", "BROKER_REFUSED"),
        (SASL, "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's", "BROKER_REFUSED"),
        (TLS, "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed", "BROKER_REFUSED"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "Broker: SASL Authentication failed", "BROKER_REFUSED"),
        (SASL, "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport", "TASK_FAILED"),
        (SASL, "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's", "TASK_FAILED"),
        (SASL, "Failed to acquire SASL OAUTHBEARER token: no answer", "TASK_FAILED"),
        (TLS, "SSL handshake failed: Disconnected", "TASK_FAILED"),
        (KafkaError.INVALID_CONFIG, "", "CONFIG_INVALID"),
    ],
)
def test_a_refusal_is_told_from_a_login_that_was_interrupted(code: int, text: str, expected: str) -> None:
    verdict = judge(KafkaException(KafkaError(code, text)))
    assert (verdict.reason, verdict.retriable) == (expected, False)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unauthenticated("wrong password", reason="BROKER_REFUSED"), ("BROKER_REFUSED", False)),
        (InvalidArgument("ssl.truststore.location: no such file"), ("CONFIG_INVALID", False)),
        (ConfigValueError("a", "b"), ("CONFIG_INVALID", False)),
        (Unavailable("no broker"), ("BROKER_LOST", True)),
        (ConnectError("no"), ("TASK_FAILED", False)),
    ],
)
def test_errors_of_our_own(error: Exception, expected: tuple[str, bool]) -> None:
    verdict = judge(error)
    assert (verdict.reason, verdict.retriable) == expected
