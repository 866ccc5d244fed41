"""Connections of other users of the host."""

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from keelman.runtime.http.local_peers import LocalPeers, peer_user

NOBODY = 65_534


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        opened = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip("this host has no IPv6")
    with opened:
        yield opened


def test_the_user_of_a_connection_is_found(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()[:2]):
        accepted, _ = listener.accept()
        with accepted:
            assert peer_user(accepted.getsockname(), accepted.getpeername()) == (os.geteuid(), True)
            assert LocalPeers(range(os.geteuid(), os.geteuid() + 1)).admits(accepted), "its own user's"
            assert LocalPeers(range(600_000, 600_001)).admits(accepted)


def test_a_connection_that_its_process_has_closed_is_refused(listener: socket.socket) -> None:
    client = socket.create_connection(listener.getsockname()[:2])
    client.sendall(b"POST / HTTP/1.1\r\n\r\n")
    client.close()
    accepted, _ = listener.accept()
    with accepted:
        assert not LocalPeers(range(600_000, 600_001)).admits(accepted)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others")
def test_a_connection_of_a_refused_user_is_refused(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    connect = 'exec 3<>"/dev/tcp/$0/$1"; read -r'
    with subprocess.Popen(
        ["bash", "-c", connect, host, str(port)], stdin=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[]
    ) as process:
        try:
            listener.settimeout(30)
            accepted, _ = listener.accept()
            with accepted:
                assert not LocalPeers(range(NOBODY, NOBODY + 1)).admits(accepted)
                assert LocalPeers(range(600_000, 600_001)).admits(accepted)
        finally:
            process.kill()


def test_an_address_of_another_host_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote:
        def getsockname(self) -> tuple[str, int]:
            return ("192.0.2.1", 8083)

        def getpeername(self) -> tuple[str, int]:
            return ("192.0.2.7", 40_000)

    class Same(Remote):
        def getpeername(self) -> tuple[str, int]:
            return ("192.0.2.1", 40_000)

    refusing = LocalPeers(range(600_000, 600_001))
    assert refusing.admits(Remote())  # type: ignore[arg-type]
    assert not refusing.admits(Same()), "of this host, but the kernel knows no such socket any more"  # type: ignore[arg-type]
