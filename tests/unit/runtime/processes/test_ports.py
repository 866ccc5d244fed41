"""Ports: free, taken, and addresses that are not ours."""

from __future__ import annotations

import socket

import pytest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.processes.ports import (
    BLOCK,
    LOWEST_PORT,
    Reserve,
    check_port,
    free_ports,
    free_row,
    hold_row,
    port_is_free,
)

HOST = "127.0.0.1"


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


def test_what_one_process_is_given_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve, other = Reserve(), Reserve()  # as in two processes, since the kernel holds reserved ports
    monkeypatch.setattr("random.randrange", lambda _end: 0)
    ports = [set(r.ports(BLOCK + 1, HOST)) | set(r.row(BLOCK + 1, HOST)) for r in (reserve, other, reserve)]
    assert [len(ports) for ports in ports] == [2 * BLOCK + 2] * 3
    assert not ports[0] & ports[1] | ports[1] & ports[2] | ports[2] & ports[0]
    row = reserve.row(2, HOST)
    assert reserve.hold(row)
    assert not other.hold(row)
    assert not other.hold(range(LOWEST_PORT - 1, LOWEST_PORT))


def test_ports_are_given_again_when_there_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keelman.runtime.processes.ports.MAX_GIVEN", 2)
    reserve = Reserve()
    first = reserve.ports(2 * BLOCK, HOST)
    assert len(set(first)) == len(first)
    with socket.create_server((HOST, first[0])):
        assert reserve.ports(2, HOST) == first[1:3]
    with pytest.raises(Unavailable, match=r"^no 81 free ports between 20000 and 31999$"):
        reserve.ports(len(first) + 1, HOST)


def test_a_row_stays_its_process_s() -> None:
    row = free_row(BLOCK)
    assert len(row) == BLOCK
    assert all(port_is_free(HOST, port) for port in row)
    with socket.create_server((HOST, row[0])):
        assert hold_row(row), "in use, and ours"
    assert not set(row) & {*free_ports(3), *free_row(3)}


def test_an_address_of_another_host_is_not_called_taken() -> None:
    with pytest.raises(InvalidArgument, match=r"demo\.host: '192\.0\.2\.1' is not legal: an address of this host"):
        check_port("demo", "192.0.2.1", 0)
