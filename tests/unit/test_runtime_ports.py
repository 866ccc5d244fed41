"""Ports: free, taken, and addresses that are not ours."""

from __future__ import annotations

import socket

import pytest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.ports import check_port, free_ports, joined, port_is_free


def test_a_listeners_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not port_is_free("127.0.0.1", port)
        with pytest.raises(Unavailable) as caught:
            check_port("demo", "127.0.0.1", port)
        assert caught.value.reason == "PORT_TAKEN"
        assert f"demo.port: {port} on 127.0.0.1 is taken" in caught.value.message
    assert port_is_free("127.0.0.1", port)
    check_port("demo", "127.0.0.1", port)


def test_a_taken_port_says_how_another_one_is_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            Unavailable, match=rf"^gateway\.http_port: {port} .* --http-port or KEELMAN_GATEWAY_HTTP_PORT$"
        ):
            check_port("gateway.http", "127.0.0.1", port)
        with pytest.raises(Unavailable, match=r"^state\.port: .* --port or KEELMAN_STATE_PORT$"):
            check_port("state", "127.0.0.1", port)


def test_free_ports_differ_and_are_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(port_is_free("127.0.0.1", p) for p in ports)


def test_an_address_of_another_host_is_not_called_taken() -> None:
    with pytest.raises(InvalidArgument, match=r"demo\.host: '192\.0\.2\.1' is not legal: an address of this host"):
        check_port("demo", "192.0.2.1", 0)


def test_an_ipv6_address_gets_brackets() -> None:
    assert joined("::1", 80) == "[::1]:80"
    assert joined("localhost", 80) == "localhost:80"
