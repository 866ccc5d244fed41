"""The actor of a call comes from its gateway alone, and not from the gateway's client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.api.node.v1.node_pb2 import Node
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceServicer
from keelman.rpc.actors import ACTOR, Actors, act_for, actor
from keelman.rpc.channels import channel
from keelman.rpc.forward import forwarded
from keelman.rpc.generated import service_of, stub_of
from keelman.rpc.guarded import Change, Guarded, Incoming
from keelman.rpc.server import RpcService, serve


class State(NodeServiceServicer):
    """A state service that answers with the actor of the call."""

    async def GetNode(self, request: Any, context: Any) -> Any:
        return nodes.GetNodeResponse(node=Node(name=actor()))


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    act_for("")
    yield
    act_for("")


@pytest.mark.parametrize("name", ["ada", "ada lövelace %", ""])
async def test_the_state_service_gets_the_actor_of_the_gateway(tmp_path: Path, name: str) -> None:
    async def admit(call: Incoming) -> Change | None:
        act_for(name)
        return None

    state, gateway = tmp_path / "state.sock", tmp_path / "gateway.sock"
    async with (
        serve(RpcService.of(State()), socket=state, interceptors=[Actors()]),
        channel(f"unix:{state}", translate=False) as way,
        serve(
            forwarded(service_of("node", "node"), way, peer="", check=lambda *_: None, deadline_seconds=30),
            socket=gateway,
            interceptors=[Guarded(admit)],
        ),
        channel(f"unix:{gateway}") as link,
    ):
        stub = stub_of(link, "node", "node")
        for metadata in ((), ((ACTOR, "somebody"),)):
            answer = await stub.GetNode(nodes.GetNodeRequest(name="n"), metadata=metadata, timeout=30)
            assert answer.node.name == name
    assert actor() == ""
