"""The origin of a call."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from keelman.rpc.server import is_local, peer_host


@dataclass
class Called:
    """A call, reduced to its peer."""

    where: str

    def peer(self) -> str:
        return self.where


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.1:5050", "10.0.0.1"),
        ("ipv6:%5Bfd00::1%5D:5050", "fd00::1"),
        ("ipv6:[::ffff:10.0.0.1]:5050", "10.0.0.1"),
        ("unix:", ""),
    ],
)
def test_the_address_that_a_call_came_from(peer: str, host: str) -> None:
    context = cast(Any, Called(peer))
    assert peer_host(context) == host
    assert is_local(context) == (not host)
