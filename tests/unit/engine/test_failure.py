"""Why a copy run failed: errors that the same configuration would meet again differ from passing ones."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.engine.failure import judge
from keelman.model.errors import InvalidArgument, Unauthenticated, Unavailable

SASL, TLS, LOST = KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._TRANSPORT


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
        (LOST, "Receive failed: error:0A000412:SSL routines::bad certificate: SSL alert number 42", "BROKER_REFUSED"),
        (LOST, "Receive failed: certificate required: SSL alert number 116 (after 0ms)", "BROKER_REFUSED"),
        (TLS, "SSL handshake failed: unknown ca: SSL alert number 48", "BROKER_REFUSED"),
        (KafkaError.INVALID_CONFIG, "", "CONFIG_INVALID"),
    ],
)
def test_a_refusal_is_told_from_a_login_that_was_interrupted(code: int, text: str, expected: str) -> None:
    verdict = judge(KafkaException(KafkaError(code, text)))
    assert (verdict.reason, verdict.retriable) == (expected, False)


@pytest.mark.parametrize("text", ["Disconnected", "Receive failed: close notify: SSL alert number 0"])
def test_a_connection_that_is_lost_passes(text: str) -> None:
    verdict = judge(KafkaException(KafkaError(LOST, text)))
    assert (verdict.reason, verdict.retriable) == ("BROKER_LOST", True)


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


def test_what_cannot_be_shown_or_is_too_long_is_told_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("nothing to say")

    assert judge(Mute()).message == "a Mute without a message"
    assert judge(ConnectError("a \ud800 half")).message == "a ? half"
    long = judge(ConnectError("e" * 1_000_000))
    assert long.message.endswith("e... (1000000 characters)")
    assert len(long.trace) < 11_000


def test_endless_recursion_is_told_by_its_last_calls() -> None:
    def deeper(depth: int) -> None:
        if depth == 0:
            raise ConnectError("the bottom")
        deeper(depth - 1)

    with pytest.raises(ConnectError) as caught:
        deeper(500)
    lines = judge(caught.value).trace.splitlines()
    assert len(lines) == 101
    assert lines[1].startswith("\tat deeper(")
