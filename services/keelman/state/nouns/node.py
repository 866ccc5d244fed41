"""Nodes: hosts with an agent."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from keelman.api.node.v1 import node_pb2
from keelman.api.node.v1 import node_service_pb2 as pb
from keelman.api.node.v1 import node_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterGoal
from keelman.model.errors import FailedPrecondition
from keelman.model.node import Node, NodeFigures, NodeSpec, NodeState
from keelman.model.rules.field_checks import check_labels, check_limits
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.state.nouns.parts import NounParts
from keelman.state.planning.pinned import pinned_workloads
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.limits import limits_message
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, Snapshot
from keelman.state.resources.transaction import Transaction
from keelman.state.trust.rows import without_certificate


def spec_message(spec: NodeSpec) -> node_pb2.NodeSpec:
    """Returns the message of a node's spec."""
    return message_of(node_pb2.NodeSpec, spec, capacity=limits_message(spec.capacity))


def figures_of(message: node_pb2.NodeFigures) -> NodeFigures:
    """Returns the figures of a host in a heartbeat."""
    return value_of(NodeFigures, message)


def node_message(node: Node, pinned_workloads: Sequence[str] = ()) -> node_pb2.Node:
    """Returns the message of a node; `pinned_workloads` are those that keep a draining node from being empty."""
    status = message_of(node_pb2.NodeStatus, node, address=node.host, pinned_workloads=pinned_workloads)
    return message_of(node_pb2.Node, node, spec=spec_message(node.spec), status=status)


NOUN = Noun(Node, node_message, left_out=("figures", "heartbeat_time"))


def check(spec: NodeSpec) -> None:
    """Raises InvalidArgument naming the field, the value and the legal values."""
    check_labels("spec.labels", spec.labels)
    check_limits("spec.capacity", spec.capacity.cpus, spec.capacity.memory_bytes)


def create(tx: Transaction, name: str, spec: NodeSpec) -> Node:
    """Stores a node whose agent has not come yet."""
    check_free("node", name, tx.snapshot.nodes)
    check(spec)
    return tx.put(Node(name, str(uuid.uuid4()), tx.now, tx.now, NodeState.EXPECTED, agent_address="", spec=spec))


def update(tx: Transaction, name: str, etag: str, change: Callable[[NodeSpec], NodeSpec]) -> Node:
    """Changes the spec of the node by `change`."""
    node = present(tx, Node, name, etag)
    spec = change(node.spec)
    if spec == node.spec:
        return node
    check(spec)
    return tx.put(dataclasses.replace(node, spec=spec, generation=node.generation + 1))


def delete(tx: Transaction, name: str, etag: str) -> None:
    """Forgets a node without an agent that carries nothing and that no cluster names, together with its certificate."""
    node = present(tx, Node, name, etag)
    brokers, workers = (_naming(tx.snapshot, noun, name) for noun in (BROKER_CLUSTER, WORKER_CLUSTER))
    if named := ", ".join(sorted({*brokers, *workers})):
        raise FailedPrecondition(
            f"node {name!r} is named by clusters {named}: delete these first",
            reason="IN_USE",
            metadata={"clusters": named, "broker_clusters": ", ".join(brokers), "worker_clusters": ", ".join(workers)},
        )
    if carried := ", ".join(w.name for w in tx.snapshot.workloads_on(name)):
        raise FailedPrecondition(
            f"node {name!r} carries {carried}: delete their clusters first",
            reason="CARRIES_WORKLOADS",
            metadata={"workloads": carried},
        )
    if node.state not in (NodeState.OFFLINE, NodeState.EXPECTED):
        raise FailedPrecondition(f"node {name!r} is {node.state}: stop its agent first", reason="NOT_OFFLINE")
    tx.drop(NODE, name)
    for kind in (IdentityKind.NODE, IdentityKind.BROKER):
        tx.statements.append(without_certificate(Identity(kind, name).path))


def _naming(snapshot: Snapshot, noun: str, node: str) -> list[str]:
    """Returns the clusters of a noun that name a node, except those that are being deleted."""
    clusters = snapshot.resources(noun)
    return sorted(name for name in snapshot.pinned_to(noun, node) if clusters[name].goal is not ClusterGoal.DELETED)


def register(tx: Transaction, node: Node) -> Node:
    """Stores the node as its agent's registration describes it; a new node gets a uid."""
    old = tx.snapshot.nodes.get(node.name)
    if old is None:
        return tx.put(dataclasses.replace(node, uid=str(uuid.uuid4())))
    return tx.put(
        dataclasses.replace(node, uid=old.uid, create_time=old.create_time, spec=old.spec, generation=old.generation)
    )


def judge(tx: Transaction, name: str, state: NodeState, message: str) -> None:
    """Stores whether a node reports."""
    node = tx.snapshot.nodes[name]
    if node.state is NodeState.EXPECTED:
        return  # its state changes when its agent comes
    if (node.state, node.message) != (state, message):
        tx.put(dataclasses.replace(node, state=state, message=message))


def _mark(
    tx: Transaction, request: pb.CordonNodeRequest | pb.UncordonNodeRequest | pb.DrainNodeRequest, **marks: Any
) -> Node:
    return update(tx, request.name, request.etag, lambda spec: dataclasses.replace(spec, **marks))


class NodeApi(NounApi[NounParts], grpc.NodeServiceServicer):
    """Nodes."""

    noun = NODE
    GetNode, ListNodes = get, list_page

    @writing()
    def CreateNode(self, tx: Transaction, request: pb.CreateNodeRequest) -> Node:
        """Stores a node whose agent has not come yet."""
        return create(tx, request.name, value_of(NodeSpec, request.spec))

    @writing()
    def UpdateNode(self, tx: Transaction, request: pb.UpdateNodeRequest) -> Node:
        """Changes the spec of a node."""

        def change(spec: NodeSpec) -> NodeSpec:
            return value_of(NodeSpec, masked(spec_message(spec), request.spec, request.update_mask))

        return update(tx, request.name, request.etag, change)

    @writing()
    def CordonNode(self, tx: Transaction, request: pb.CordonNodeRequest) -> Node:
        """Keeps new workloads off a node."""
        return _mark(tx, request, cordoned=True)

    @writing()
    def UncordonNode(self, tx: Transaction, request: pb.UncordonNodeRequest) -> Node:
        """Lets a node take workloads again."""
        return _mark(tx, request, cordoned=False, draining=False)

    @writing()
    def DrainNode(self, tx: Transaction, request: pb.DrainNodeRequest) -> Node:
        """Moves the workloads of a node to others."""
        return _mark(tx, request, cordoned=True, draining=True)

    @writing()
    def DeleteNode(self, tx: Transaction, request: pb.DeleteNodeRequest) -> None:
        """Forgets a node."""
        delete(tx, request.name, request.etag)

    def _shown(self, node: Node, request: Any) -> node_pb2.Node:
        pinned = pinned_workloads(self._snapshot, node.name) if node.spec.draining else ()
        return node_message(self.parts.sessions.alive(node), pinned)

    def _fields(self, node: Node | None, tx: Transaction) -> dict[str, Any]:
        return {} if node is None else {NODE: node_message(node)}


API = NodeApi
