"""Which handshakes were refused, of which client and why, from grpc's own log lines and the open connections."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest
import structlog

from keelman.runtime.tls.refused_handshakes import (
    QUIET_SECONDS,
    WAIT_SECONDS,
    Handshakes,
    Peer,
    connections,
    refusal_of,
)

HEAD = (
    "I1127 09:50:00.911552    4342 ssl_transport_security.cc:2563] "
    "Handshake failed with error SSL_ERROR_SSL: error:100000c0:SSL routines:OPENSSL_internal:"
)
ENDED = f"{HEAD}CERTIFICATE_VERIFY_FAILED: certificate has expired"
NONE = f"{HEAD}PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid certificate verification context"
AGENT, OTHER = Peer("10.0.0.2", 40001, 7410), Peer("10.0.0.3", 40002, 7410)


class Clock:
    """A clock, and the connections at its time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.there: set[Peer] = set()

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(clock: Clock) -> Handshakes:
    return Handshakes(lambda ports: set(clock.there), clock)


def logged(handshakes: Handshakes) -> list[Mapping[str, Any]]:
    with structlog.testing.capture_logs() as capture_logs:
        handshakes.tick()
    return capture_logs


def refused(handshakes: Handshakes, clock: Clock, peer: Peer, line: str) -> list[Mapping[str, Any]]:
    """Returns the log entries about a client that connects and whose handshake fails."""
    clock.there.add(peer)
    clock.passes(1.0)
    handshakes.begin()
    assert handshakes.take(line)
    clock.there.discard(peer)
    clock.passes(2 * WAIT_SECONDS)
    return logged(handshakes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE: x", "it showed no certificate"),
        ("CERTIFICATE_VERIFY_FAILED: certificate has expired", "its certificate has ended"),
        ("CERTIFICATE_VERIFY_FAILED: certificate is not yet valid", "its certificate is not good yet"),
        ("CERTIFICATE_VERIFY_FAILED: self signed certificate in certificate chain", "its certificate is of another CA"),
        ("BAD_SIGNATURE: certificate signature failure", "of another CA of the same name"),
        ("WRONG_VERSION_NUMBER: x", "it spoke no TLS"),
        ("HTTP_REQUEST: x", "it spoke plain HTTP"),
        ("SOMETHING_NEW: x", "TLS failed: error:100000c0:SSL routines:OPENSSL_internal:SOMETHING_NEW: x"),
    ],
)
def test_the_reason_is_in_words(text: str, reason: str) -> None:
    refusal = refusal_of(HEAD + text)
    assert refusal is not None
    assert reason in refusal.reason


def test_other_lines_are_nobodys() -> None:
    handshakes = Handshakes(lambda ports: set())
    assert not handshakes.take("I1127 09:50:00.911552    4342 chttp2_transport.cc:1] GOAWAY sent")
    assert not handshakes.take("")


def test_who_was_refused_is_who_began_last_and_is_gone(made: Handshakes, clock: Clock) -> None:
    clock.there.add(OTHER)
    made.begin()
    (event,) = refused(made, clock, AGENT, ENDED)
    assert event["event"] == "handshake_refused"
    assert (event["peer"], event["port"]) == ("10.0.0.2", 7410)
    assert event["reason"] == "its certificate has ended, by the clock of this host"
    assert "check the clocks" in event["remedy"]


def test_who_comes_again_and_again_is_logged_once_a_minute_for_each_reason(made: Handshakes, clock: Clock) -> None:
    assert refused(made, clock, AGENT, ENDED)
    assert not refused(made, clock, AGENT._replace(their_port=40009), ENDED)
    assert refused(made, clock, AGENT, NONE)
    assert refused(made, clock, OTHER, ENDED)
    clock.passes(QUIET_SECONDS)
    assert refused(made, clock, AGENT, ENDED)


def test_one_whom_nobody_noted_is_logged_without_a_name(made: Handshakes, clock: Clock) -> None:
    assert made.take(NONE)
    assert logged(made) == [], "its connection may still be there"
    clock.passes(2 * WAIT_SECONDS)
    (event,) = logged(made)
    assert "peer" not in event
    assert event["reason"] == "it showed no certificate"


@pytest.mark.parametrize(("family", "host", "present"), [
    (socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "::1"),
    (socket.AF_INET6, "::ffff:127.0.0.1", "127.0.0.1"),
])  # fmt: skip
def test_the_connections_of_a_port_are_found(family: socket.AddressFamily, host: str, present: str) -> None:
    with socket.socket(family) as server, socket.socket(family) as client:
        if family is socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((host, 0))
        server.listen()
        port = server.getsockname()[1]
        assert connections([port]) == set()
        client.connect((host, port))
        assert connections([port]) == {Peer(present, client.getsockname()[1], port)}
