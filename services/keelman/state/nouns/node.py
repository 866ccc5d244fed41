"""Nodes: hosts with an agent."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field, SQLModel

from keelman.api.node.v1 import node_pb2
from keelman.api.node.v1 import node_service_pb2 as pb
from keelman.api.node.v1 import node_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterGoal
from keelman.model.errors import FailedPrecondition
from keelman.model.node import Node, NodeFigures, NodeSpec, NodeState
from keelman.model.shapes import check_labels, check_limits
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.checks import check_etag, check_free
from keelman.state.nouns.limits import limits_message, limits_of
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import (
    big_column,
    json_column,
    micros,
    moment,
    plain_spec,
    read_spec,
    text_column,
)
from keelman.state.nouns.serving import labelled_page, verb
from keelman.state.planning.pinned import pinned_workloads
from keelman.state.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

M = TypeVar("M", bound=Message)


class NodeRow(SQLModel, table=True):
    """A node and its last registration; `spec` is JSON."""

    __tablename__ = "node"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    state: str
    agent_address: str
    cpus: int
    memory_bytes: int = Field(sa_column=big_column())
    version: str
    incarnation: str
    session: int = Field(sa_column=big_column())
    message: str = Field(sa_column=text_column())
    address: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    generation: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())


def to_row(node: Node) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": node.name, "uid": node.uid, "create_time": micros(node.create_time),
        "update_time": micros(node.update_time), "state": str(node.state), "agent_address": node.agent_address,
        "cpus": node.cpus, "memory_bytes": node.memory_bytes, "version": node.version,
        "incarnation": node.incarnation, "session": node.session, "message": node.message, "address": node.address,
        "spec": plain_spec(node.spec), "generation": node.generation, "revision": int(node.etag or 0),
    }  # fmt: skip


def from_row(row: NodeRow) -> Node:
    """The node of a row."""
    return Node(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        state=NodeState(row.state), agent_address=row.agent_address, cpus=row.cpus, memory_bytes=row.memory_bytes,
        version=row.version, message=row.message, address=row.address, spec=read_spec(NodeSpec, row.spec),
        generation=row.generation, etag=str(row.revision), session=row.session, incarnation=row.incarnation,
    )  # fmt: skip


def spec_message(spec: NodeSpec) -> node_pb2.NodeSpec:
    """What a user wants of a node, on the wire."""
    return node_pb2.NodeSpec(
        description=spec.description,
        labels=dict(spec.labels),
        capacity=limits_message(spec.capacity),
        cordoned=spec.cordoned,
        draining=spec.draining,
    )


def spec_of(message: node_pb2.NodeSpec) -> NodeSpec:
    """What a user wants of a node."""
    return NodeSpec(
        description=message.description,
        labels=dict(message.labels),
        capacity=limits_of(message.capacity),
        cordoned=message.cordoned,
        draining=message.draining,
    )


def figures_of(message: node_pb2.NodeFigures) -> NodeFigures:
    """What a heartbeat says of its host."""
    return NodeFigures(message.cpus_used, message.memory_available_bytes, message.disk_free_bytes, message.load)


def node_message(node: Node, pinned_workloads: Sequence[str] = ()) -> node_pb2.Node:
    """A node; `pinned_workloads` are those that keep a draining node from being empty."""
    return node_pb2.Node(
        name=node.name,
        uid=node.uid,
        create_time=to_timestamp(node.create_time),
        update_time=to_timestamp(node.update_time),
        spec=spec_message(node.spec),
        generation=node.generation,
        etag=node.etag,
        status=node_pb2.NodeStatus(
            state=node_pb2.NodeState.Value(f"NODE_STATE_{node.state}"),
            agent_address=node.agent_address,
            cpus=node.cpus,
            memory_bytes=node.memory_bytes,
            version=node.version,
            message=node.message,
            heartbeat_time=to_timestamp(node.heartbeat_time),
            address=node.host,
            figures=None if node.figures is None else node_pb2.NodeFigures(**dataclasses.asdict(node.figures)),
            pinned_workloads=pinned_workloads,
        ),
    )


NOUN = Noun(Node, NodeRow, to_row, from_row, node_message)


def check(spec: NodeSpec) -> None:
    """Raises InvalidArgument naming the field, the value and what is legal."""
    check_labels("spec.labels", spec.labels)
    check_limits("spec.capacity", spec.capacity.cpus, spec.capacity.memory_bytes)


def create(tx: Transaction, name: str, spec: NodeSpec) -> Node:
    """A node whose agent has not come yet."""
    check_free("node", name, tx.snapshot.nodes)
    check(spec)
    return tx.put(Node(name, str(uuid.uuid4()), tx.now, tx.now, NodeState.EXPECTED, agent_address="", spec=spec))


def update(tx: Transaction, name: str, etag: str, change: Callable[[NodeSpec], NodeSpec]) -> Node:
    """The node with the spec that `change` makes of its present one."""
    node = tx.snapshot.node(name)
    check_etag(name, etag, node.etag)
    spec = change(node.spec)
    if spec == node.spec:
        return node
    check(spec)
    return tx.put(dataclasses.replace(node, spec=spec, generation=node.generation + 1))


def delete(tx: Transaction, name: str, etag: str) -> None:
    """Forgets a node without an agent that carries nothing and that no cluster names."""
    node = tx.snapshot.node(name)
    check_etag(name, etag, node.etag)
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


def _naming(snapshot: Snapshot, noun: str, node: str) -> list[str]:
    """Clusters of a noun that name a node, but for those that are being deleted."""
    clusters = snapshot.resources(noun)
    return sorted(name for name in snapshot.pinned_to(noun, node) if clusters[name].goal is not ClusterGoal.DELETED)


def register(tx: Transaction, node: Node) -> Node:
    """The node as its agent's registration makes it; one that is new gets a uid."""
    old = tx.snapshot.nodes.get(node.name)
    if old is None:
        return tx.put(dataclasses.replace(node, uid=str(uuid.uuid4())))
    return tx.put(
        dataclasses.replace(node, uid=old.uid, create_time=old.create_time, spec=old.spec, generation=old.generation)
    )


def judge(tx: Transaction, name: str, state: NodeState, message: str) -> None:
    """Stores whether a node is heard of."""
    node = tx.snapshot.nodes[name]
    if node.state is NodeState.EXPECTED:
        return  # it is heard of when its agent comes
    if (node.state, node.message) != (state, message):
        tx.put(dataclasses.replace(node, state=state, message=message))


def _marking(**marks: Any) -> Callable[[Transaction, Any], Node]:
    return lambda tx, r: update(tx, r.name, r.etag, lambda spec: dataclasses.replace(spec, **marks))


@dataclass(frozen=True, slots=True)
class NodeApi(grpc.NodeServiceServicer):
    """Nodes."""

    parts: Parts

    async def GetNode(self, request: pb.GetNodeRequest, context: Context) -> pb.GetNodeResponse:
        """One node."""
        return pb.GetNodeResponse(node=self._shown(self.parts.store.snapshot.node(request.name)))

    async def ListNodes(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:
        """A page of nodes."""
        part, token = labelled_page(self.parts.store.snapshot, NODE, request, lambda n: n.spec.labels)
        return pb.ListNodesResponse(nodes=[self._shown(n) for n in part], next_page_token=token)

    CreateNode = verb(pb.CreateNodeRequest, pb.CreateNodeResponse, lambda tx, r: create(tx, r.name, spec_of(r.spec)))
    UpdateNode = verb(
        pb.UpdateNodeRequest,
        pb.UpdateNodeResponse,
        lambda tx, r: update(
            tx, r.name, r.etag, lambda spec: spec_of(masked(spec_message(spec), r.spec, r.update_mask))
        ),
    )
    CordonNode = verb(pb.CordonNodeRequest, pb.CordonNodeResponse, _marking(cordoned=True))
    UncordonNode = verb(pb.UncordonNodeRequest, pb.UncordonNodeResponse, _marking(cordoned=False, draining=False))
    DrainNode = verb(pb.DrainNodeRequest, pb.DrainNodeResponse, _marking(cordoned=True, draining=True))
    DeleteNode = verb(pb.DeleteNodeRequest, pb.DeleteNodeResponse, lambda tx, r: delete(tx, r.name, r.etag))

    def fields(self, made: Node | None) -> dict[str, Any]:
        """Nothing of one that is gone."""
        return {} if made is None else {"node": node_message(made)}

    def _shown(self, node: Node) -> node_pb2.Node:
        pinned = pinned_workloads(self.parts.store.snapshot, node.name) if node.spec.draining else ()
        return node_message(self.parts.sessions.alive(node), pinned)


def services(parts: Parts) -> list[Service]:
    """The gRPC services of nodes."""
    return [service("node", "NodeService", grpc.add_NodeServiceServicer_to_server, NodeApi(parts))]
