"""Reads an agent's registration, the first message of its session, and writes the answers to it. Pure."""

from __future__ import annotations

from datetime import datetime

from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.model.rules.names import checked_name
from keelman.rpc.times import to_duration


def registration_in(message: pb.OpenSessionRequest | None) -> pb.Registration:
    """Returns the registration in a session's first message, None for an ended stream. Raises InvalidArgument for any
    other message and for an illegal node name."""
    if message is None or message.WhichOneof("message") != "registration":
        raise InvalidArgument.of("message", "" if message is None else message.WhichOneof("message"), "a registration")
    checked_name("registration.node", message.registration.node)
    return message.registration


def check_addresses(registration: pb.Registration) -> None:
    """Raises InvalidArgument for addresses at which the agent or its node cannot be reached."""
    host, _, port = registration.agent_address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgument.of("registration.agent_address", registration.agent_address, "host:port")
    if any(c.isspace() or c in "/," for c in registration.node_address):
        legal = "an address or a host's name"
        raise InvalidArgument.of("registration.node_address", registration.node_address, legal)


def node_of(registration: pb.Registration, number: int, now: datetime) -> Node:
    """Returns the node as its agent describes it, in the session of this number."""
    return Node(
        name=registration.node, uid="", create_time=now, update_time=now, state=NodeState.ONLINE,
        agent_address=registration.agent_address, cpus=registration.cpus, memory_bytes=registration.memory_bytes,
        version=registration.version, address=registration.node_address, session=number,
        incarnation=registration.incarnation, broker_tls=registration.broker_tls,
        tenant_users=registration.tenant_users,
    )  # fmt: skip


def welcome(number: int, heartbeat_seconds: float, timeout_seconds: float) -> pb.OpenSessionResponse:
    """Returns the message that opens the session of this number."""
    return pb.OpenSessionResponse(
        welcome=pb.Welcome(
            session=number,
            heartbeat_interval=to_duration(heartbeat_seconds),
            session_timeout=to_duration(timeout_seconds),
        )
    )


def heartbeat_reply(heartbeat_seconds: float) -> pb.OpenSessionResponse:
    """Returns the answer to a heartbeat, and to a registration that waits."""
    reply = pb.HeartbeatReply(heartbeat_interval=to_duration(heartbeat_seconds))
    return pb.OpenSessionResponse(heartbeat_reply=reply)
