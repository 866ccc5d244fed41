"""Which labels, ports, counts and limits are legal."""

from __future__ import annotations

import pytest

from keelman.model.errors import InvalidArgument
from keelman.model.rules.field_checks import (
    MAX_ROUTES,
    check_count,
    check_different_ports,
    check_labels,
    check_limits,
    check_port,
    check_routes,
)


def test_what_is_legal_passes() -> None:
    check_labels("labels", {"team": "blue", "a/b.c-d_e": "", "k" * 63: "v" * 63})
    check_port("port", 0, zero="none")
    check_port("port", 65535)
    check_different_ports([("port", 0), ("metrics_port", 0), ("reserved_ports[0]", 1)])
    check_limits("limits", 0.5, 0)
    check_count("count", 1000)
    check_routes(
        "routes", {"db.example": "10.0.0.7", "_x-1": "::1", "n0": "fd00::7", ".".join(["a" * 62] * 4): "1.1.1.1"}
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"": "x"}, r"labels: '' is not legal: a key of 1 to 63"),
        ({"a b": "x"}, r"labels: 'a b' is not legal: a key"),
        ({"k" * 64: "x"}, "is not legal: a key"),
        ({"team": "ü"}, r"labels\.team: 'ü' is not legal: empty, or 1 to 63"),
        ({"team": "v" * 64}, r"labels\.team"),
    ],
)
def test_a_label_is_named_by_its_key(labels: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_labels("labels", labels)


def test_a_port_says_whether_it_may_be_0() -> None:
    with pytest.raises(InvalidArgument, match=r"p: 65536 is not legal: 0 \(none\) or 1 to 65535"):
        check_port("p", 65536, zero="none")
    with pytest.raises(InvalidArgument, match="p: 0 is not legal: 1 to 65535"):
        check_port("p", 0)
    with pytest.raises(InvalidArgument, match="r: 7 is not legal: another one than port"):
        check_different_ports([("port", 7), ("q", 8), ("r", 7)])


def test_limits_and_counts_are_bounded() -> None:
    for cpus in (-1.0, float("nan"), float("inf"), 1e6):
        with pytest.raises(InvalidArgument, match=r"limits\.cpus: .* 0 \(none\) to 100000"):
            check_limits("limits", cpus, 0)
    with pytest.raises(InvalidArgument, match=r"limits\.memory_bytes: -1"):
        check_limits("limits", 0, -1)
    with pytest.raises(InvalidArgument, match="count: 1001 is not legal: 1 to 1000"):
        check_count("count", 1001)


@pytest.mark.parametrize(
    ("routes", "message"),
    [
        ({"": "10.0.0.7"}, "routes: '' is not legal: the name of a host"),
        ({"a b": "10.0.0.7"}, "routes: 'a b'"),
        ({"a\n10.0.0.8 b": "10.0.0.7"}, "routes: "),
        ({"-a": "10.0.0.7"}, "routes: '-a'"),
        ({"a" * 64: "10.0.0.7"}, "routes: "),
        ({".".join(["a" * 63] * 4): "10.0.0.7"}, "routes: "),
        ({"LocalHost": "10.0.0.7"}, "other than localhost"),
        ({"10.0.0.8": "10.0.0.7"}, "routes: '10.0.0.8'"),
        ({"a": "10.0.0.7", "A": "10.0.0.8"}, "each name once"),
        ({"db": "other.example"}, r"routes\.db: 'other\.example' is not legal: an IPv4 or IPv6 address"),
        ({"db": "10.0.0.7 x"}, r"routes\.db"),
        ({"db": "fe80::1%eth0"}, r"routes\.db"),
        ({"db": ""}, r"routes\.db"),
        ({f"h{n}": "10.0.0.7" for n in range(MAX_ROUTES + 1)}, "1001 names"),
    ],
)
def test_a_route_is_of_a_host_to_an_address(routes: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_routes("routes", routes)
