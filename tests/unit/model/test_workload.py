"""The form of a workload's names and addresses."""

from __future__ import annotations

from keelman.model.workload import joined_address


def test_an_ipv6_address_gets_brackets() -> None:
    assert joined_address("::1", 80) == "[::1]:80"
    assert joined_address("localhost", 80) == "localhost:80"
