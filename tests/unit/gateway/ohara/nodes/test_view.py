"""Nodes in answers."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.node.v1 import node_pb2 as pb
from keelman.gateway.ohara.clusters.known_clusters import KnownClusters
from keelman.gateway.ohara.nodes.view import node_json, resources
from keelman.gateway.ohara.state.hosts import Hosts, node_key
from keelman.gateway.ohara.state.stored import StoredDocument
from keelman.gateway.ohara.wire.keys import ObjectKey

GIB = 1 << 30


def node(state: int = pb.NODE_STATE_ONLINE, **status: Any) -> pb.Node:
    return pb.Node(name="n1", status=pb.NodeStatus(state=state, **status), spec=pb.NodeSpec(labels={"disk": "ssd"}))


def answer(single_node: pb.Node, *documents: StoredDocument, **more: Any) -> dict[str, Any]:
    hosts = Hosts([single_node], documents)
    return node_json(hosts.all["n1"], KnownClusters(hosts, []), **{"own": None, "cover": False, **more})


@pytest.mark.parametrize(
    ("memory", "value", "unit"),
    [(0, 0.0, "bytes"), (1023, 1023.0, "bytes"), (1536, 1.5, "KB"), (3 << 20, 3.0, "MB"), (8 * GIB, 8.0, "GB")],
)
def test_memory_has_the_unit_of_its_size(memory: int, value: float, unit: str) -> None:
    assert resources(node(memory_bytes=memory))[1] == {"name": "Memory", "value": value, "unit": unit}


@pytest.mark.parametrize(("cpus", "unit"), [(0, "cores"), (1, "core"), (2, "cores")])
def test_processors_are_counted(cpus: int, unit: str) -> None:
    assert resources(node(cpus=cpus))[0] == {"name": "CPU", "value": float(cpus), "unit": unit}


def test_what_is_used_is_a_part_of_what_the_host_has() -> None:
    figures = pb.NodeFigures(cpus_used=5.0, memory_available_bytes=GIB)
    cpu, memory = resources(node(cpus=4, memory_bytes=4 * GIB, figures=figures))
    assert (cpu["used"], memory["used"]) == (1.0, 0.75), "no more than all"
    limited = node(cpus=4, memory_bytes=4 * GIB)
    limited.spec.capacity.cpus, limited.spec.capacity.memory_bytes = 1.5, GIB
    assert [(resource["value"], "used" in resource) for resource in resources(limited)] == [(1.5, False), (1.0, False)]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (pb.NODE_STATE_EXPECTED, "no agent has come"),
        (pb.NODE_STATE_UNKNOWN, "has just restarted"),
        (pb.NODE_STATE_OFFLINE, "not heard of for 12 s"),
    ],
)
def test_why_a_node_is_not_there_is_said(state: int, words: str) -> None:
    actual_answer = answer(node(state, message="not heard of for 12 s" if state == pb.NODE_STATE_OFFLINE else ""))
    assert (actual_answer["state"], words in actual_answer["error"]) == ("UNAVAILABLE", True)


def test_a_node_that_came_with_its_agent_alone_has_every_field() -> None:
    actual_answer = answer(node(), own=ObjectKey("N/A", "host"))
    assert {k: actual_answer[k] for k in ("hostname", "port", "user", "password", "tags", "state")} == {
        "hostname": "n1", "port": 22, "user": "keelman", "password": "******", "tags": {"disk": "ssd"},
        "state": "AVAILABLE",
    }  # fmt: skip
    assert "error" not in actual_answer
    assert actual_answer["services"][-1] == {"name": "configurator", "clusterKeys": [{"group": "N/A", "name": "host"}]}


def test_a_password_is_answered_unless_it_is_covered() -> None:
    stored_document = StoredDocument(node_key("n1"), {"hostname": "N1", "user": "u"}, {"password": "p"}, modified=7)
    actual_answer = answer(node(), stored_document)
    assert (
        actual_answer["hostname"],
        actual_answer["user"],
        actual_answer["password"],
        actual_answer["lastModified"],
    ) == ("N1", "u", "p", 7)
    assert answer(node(), stored_document, cover=True)["password"] == "******"
