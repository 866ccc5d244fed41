"""Builds the gateway's messages from manifests, for each kind: the spec, and the requests that apply it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorGoal
from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.cli.manifests.filling import fill
from keelman.cli.manifests.manifest import Manifest
from keelman.cli.output.columns import key_of
from keelman.cli.output.words import whole_numbers
from keelman.model.errors import InvalidArgument
from keelman.rpc.enums import word
from keelman.rpc.generated import messages_of

RUNNING, STOPPED, PAUSED, PRESENT, ABSENT = "RUNNING", "STOPPED", "PAUSED", "PRESENT", "ABSENT"
OWNERS = ("origin", "extra")
"""Fields of specs that belong to other APIs. They keep their present values if a manifest does not set them."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one kind of resources. `message` is the message class that a spec is filled into, `without` its
    fields that a manifest's spec does not have, `kept` its fields that keep their values unless a manifest names them.
    """

    kind: Kind
    message: Any
    without: tuple[str, ...] = ("labels",)
    kept: tuple[str, ...] = OWNERS
    goals: tuple[str, ...] = ()
    """The goals that a resource of the kind can have."""
    new_goal: str = ""
    """The goal of a new resource whose manifest names no goal."""
    pruned: bool = True
    """Whether a resource that no file contains any more may be removed."""
    batched: bool = True
    """Whether the requests for the kind can be in a batch of writes."""

    def checked_goal(self, goal: Any) -> str:
        """Returns the goal that a manifest names, empty for none. Raises InvalidArgument for an illegal goal."""
        if goal in (None, ""):
            return ""
        if not self.goals:
            raise InvalidArgument(f"goal: not for {self.kind.plural}: they always follow their spec")
        plain = str(goal).upper().rpartition("GOAL_")[2]
        if plain not in self.goals:
            raise InvalidArgument.of("goal", goal, f"for {self.kind.plural} one of {', '.join(self.goals)}")
        return plain

    def filled(self, manifest: Manifest) -> Any:
        """Returns a manifest's spec and labels as a message. Raises InvalidArgument."""
        message = self.message()
        spec, hidden = manifest.spec, set(self.without) - {"labels"}
        fill(message, spec, "spec", without=hidden)
        if manifest.labels:
            if isinstance(spec, Mapping) and spec.get("labels"):
                raise InvalidArgument("spec.labels: the manifest has labels already: write them once")
            message.labels.update(manifest.labels)
        return message

    def request(self, verb: str, **fields: Any) -> Message:
        """Returns the request of an RPC of the kind."""
        request_class: Message = getattr(messages_of(self.kind.area, self.kind.field), f"{self.kind.rpc(verb)}Request")(
            **fields
        )
        return request_class

    def create(self, name: str, filled: Any) -> list[Message]:
        """Returns the requests that create a resource."""
        return [self.request("Create", name=name, spec=filled)]

    def update(self, present: Any, filled: Any) -> list[Message]:
        """Returns the requests that update a present resource."""
        for field in self.kept:
            keep(filled, present.spec, field)
        return [self.request("Update", name=present.name, spec=filled)]

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """Returns the requests that bring a resource to its goal; none if it has reached it. `present` is None for a
        new resource, `after` is the resource once it has its spec. Without a goal its latest goal counts."""
        return []

    def drifts(self, present: Any) -> Sequence[str]:
        """Returns how a resource differs from its applied state. Applying it again removes these differences."""
        return ()

    def goal_of(self, present: Any) -> str:
        """Returns the present goal of a resource, empty for none."""
        return ""

    def remove(self, present: Any) -> Message:
        """Returns the request that deletes a resource."""
        return self.request("Delete", name=present.name)

    def labels_of(self, resource: Any) -> dict[str, str]:
        """Returns the labels of a resource."""
        return dict(resource.spec.labels)

    def shown(self, resource: Any) -> dict[str, Any]:
        """Returns a resource as the spec of its manifest."""
        return plain(resource.spec, self.without)

    async def found(self, gateway: Gateway, names: Sequence[str]) -> Sequence[Any]:
        """Returns all resources of the kind; those with these names have every field that is compared."""
        return await gateway.list(self.kind)

    def made(self, name: str, filled: Any, present: Any) -> Any:
        """Returns the future resource; None if the gateway returns it when it judges the requests."""
        return None

    def differs(self, present: Any, after: Any) -> bool:
        """Tells whether a resource changes, for kinds of which the gateway does not tell it."""
        return False

    def key(self, resource: Any) -> str:
        """Returns the name of a resource in a manifest."""
        return key_of(self.kind, resource)

    def owned(self, resource: Any) -> bool:
        """Tells whether a resource is created and deleted with another resource, which then has the manifest."""
        return False


@dataclass(frozen=True, slots=True)
class ClusterForm(Form):
    """The form of clusters, which run or are stopped."""

    def goal_of(self, present: Any) -> str:
        """Returns the goal that was requested last."""
        if not self._steered(present):
            return ""
        return STOPPED if word(ClusterState, present.status.state) in ("STOPPING", "STOPPED") else RUNNING

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """Returns the requests that bring a resource to its goal."""
        if goal and not self._steered(after):
            raise InvalidArgument.of("goal", goal, "none for external broker clusters: keelman does not run them")
        initial = RUNNING if self.kind is kinds.BROKER_CLUSTERS else STOPPED  # the goal at creation
        now = initial if present is None else self.goal_of(present)
        return [] if goal in ("", now) else [self.request("Start" if goal == RUNNING else "Stop", name=name)]

    def owned(self, resource: Any) -> bool:
        """Tells whether a cluster belongs to a dedicated connector."""
        origin = resource.spec.origin
        return (origin.api, origin.scope) == ("keelman", "dedicated_connector")

    def _steered(self, cluster: Any) -> bool:
        return self.kind is kinds.WORKER_CLUSTERS or cluster.spec.WhichOneof("kind") == "managed"


@dataclass(frozen=True, slots=True)
class AppliedForm(Form):
    """The form of topics and definitions, which operations apply."""

    goal_enum: Any = None

    def goal_of(self, present: Any) -> str:
        """Returns the goal that was requested last."""
        return word(self.goal_enum, present.goal)

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """Returns the requests that bring a resource to its goal."""
        applied_goal = ABSENT if present is None else self.goal_of(present)
        new_goal = goal or applied_goal
        is_behind = after.generation != after.status.applied_generation
        is_off = present is not None and bool(self.drifts(present))
        if new_goal == applied_goal and (new_goal == ABSENT or not (is_behind or is_off)):
            return []
        return [self.request("Apply", name=name, goal=_number(self.goal_enum, new_goal))]

    def drifts(self, present: Any) -> Sequence[str]:
        """Returns the differences that another apply removes."""
        status = present.status
        if self.kind is kinds.DEFINITIONS:
            return list(status.drifts) if status.drifted else [status.message] if status.message else []
        state = word(TopicState, status.state)
        if self.goal_of(present) == ABSENT:
            return []
        if state in ("MISSING", "FAILED"):
            return [f"{state}: {status.message}" if status.message else state]
        return list(status.differences) if state == PRESENT else []

    def remove(self, present: Any) -> Message:
        """Returns the delete request, which keeps the topic on the brokers or the connector."""
        keep_field = "keep_topic" if self.kind is kinds.TOPICS else "keep_connector"
        return self.request("Delete", name=present.name, **{keep_field: True})


@dataclass(frozen=True, slots=True)
class DedicatedForm(Form):
    """The form of dedicated connectors, each of whose changes is an operation."""

    def goal_of(self, present: Any) -> str:
        """Returns the goal that was requested last."""
        return word(DedicatedConnectorGoal, present.goal)

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """Returns the requests that bring a resource to its goal."""
        if present is None and goal == PAUSED:
            raise InvalidArgument.of("goal", goal, "RUNNING for a new one: it can be paused once it has run")
        if present is None or not goal or goal == self.goal_of(present):
            return []
        return [self.request("Pause" if goal == PAUSED else "Resume", name=name)]


def keep(filled: Any, present: Any, field: str) -> None:
    """Copies the present value of a field into a message in which it is not set."""
    descriptor = present.DESCRIPTOR.fields_by_name.get(field)
    if descriptor is None:
        return
    has_presence = descriptor.has_presence
    is_set = filled.HasField(field) if has_presence else bool(getattr(filled, field))
    if is_set:
        return
    value = getattr(present, field)
    if not has_presence:
        setattr(filled, field, value)
    elif present.HasField(field):
        getattr(filled, field).CopyFrom(value)


def plain(message: Message, without: Sequence[str] = ()) -> dict[str, Any]:
    """Returns a message as a manifest writes it: without unset fields, and each map as an object by its keys."""
    fields: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return {key: whole_numbers(value) for key, value in fields.items() if key not in without}


def _number(enum: Any, text: str) -> int:
    return int(next(value for value in enum.values() if value and word(enum, value) == text))
