"""The name of a node and the address of its workloads, as an agent's settings give them."""

from __future__ import annotations

import pytest

from keelman.agent.settings import Settings
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import legal_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Build-Host_7.example.org", "build-host_7.example.org"),
        ("ünï", "n"),
        ("-x-", "x"),
        ("", "node"),
        ("a" * 80, "a" * 63),
    ],
)
def test_a_hosts_name_becomes_a_legal_node_name(host: str, name: str) -> None:
    assert legal_name(host) == name
    assert Settings(node=name).node_name == name


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({}, "127.0.0.1"),
        ({"host": "0.0.0.0", "advertised_address": "10.0.0.7:7420", "trust": "mesh"}, "10.0.0.7"),
        ({"advertised_address": "[fd00::7]:7420", "trust": "mesh"}, "fd00::7"),
        ({"node_address": "10.1.0.7", "trust": "mesh"}, "10.1.0.7"),
        ({"node_address": "localhost"}, "localhost"),
    ],
)
def test_workloads_are_reached_at_the_nodes_address(fields: dict[str, str], address: str) -> None:
    assert Settings(**fields).workload_address == address


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"advertised_address": "10.0.0.7:7420"}, "agent.advertised_address: '10.0.0.7' .* trust = mesh"),
        ({"node_address": "10.0.0.7"}, "agent.node_address: '10.0.0.7' .* trust = mesh"),
        ({"host": "0.0.0.0", "trust": "mesh"}, "agent.advertised_address: '0.0.0.0' .* other hosts reach"),
        ({"node_address": "10.0.0.7:80 x", "trust": "mesh"}, "agent.node_address: .* other hosts reach"),
        ({"advertised_address": "here"}, "agent.advertised_address: 'here' is not legal: host:port"),
    ],
)
def test_an_address_that_nobody_reaches_or_secures_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        _ = Settings(**fields).workload_address


def test_a_given_node_name_must_be_legal() -> None:
    with pytest.raises(InvalidArgument, match=r"agent.node: 'Upper' is not legal"):
        _ = Settings(node="Upper").node_name
