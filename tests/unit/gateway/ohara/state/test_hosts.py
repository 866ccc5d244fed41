"""The nodes that this API shows."""

from __future__ import annotations

import pytest

from keelman.api.node.v1.node_pb2 import NODE_STATE_OFFLINE, NODE_STATE_ONLINE, Node, NodeStatus
from keelman.gateway.ohara.state.hosts import HIDDEN, Hosts, node_key
from keelman.gateway.ohara.state.stored import StoredDocument
from keelman.gateway.ohara.wire.errors import OharaError


def node(name: str, state: int = NODE_STATE_ONLINE) -> Node:
    return Node(name=name, status=NodeStatus(state=state))


def kept(name: str, **content: object) -> StoredDocument:
    return StoredDocument(node_key(name), content)


HOSTS = Hosts(
    [node("alone"), node("big", NODE_STATE_OFFLINE), node("gone"), node("under_score")],
    [kept("big", hostname="BIG"), kept("gone", hostname="gone", **{HIDDEN: True}), kept("lost", hostname="lost")],
)


def test_nodes_are_known_by_hostnames_whatever_their_case() -> None:
    assert [host.hostname for host in HOSTS.all.values()] == ["alone", "BIG"]
    assert HOSTS.get("bIg") is HOSTS.all["big"]
    assert (HOSTS.shown("big"), HOSTS.shown("alone"), HOSTS.shown("gone")) == ("BIG", "alone", "gone")
    assert HOSTS.offline == {"big"}


def test_unknown_hostnames_are_refused_all_at_once() -> None:
    HOSTS.check(["alone", "BIG"])
    with pytest.raises(OharaError) as caught:
        HOSTS.check(["gone", "alone", "n9"])
    assert caught.value.code == "oharastream.ohara.configurator.route.DataCheckException"
    gone, present = '{"group":"default","name":"gone"}', '{"group":"default","name":"n9"}'
    assert caught.value.message == f"type:node {gone} does not exist,{present} does not exist "
