"""Makes the gateway's messages of manifests, kind by kind: a spec, and the requests that bring it about."""

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
"""Fields of specs that are others' own: they stay as they are where a manifest says nothing of them."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one kind of resources. `message` is the class of what a spec is filled into, `without` those of its
    fields that no spec has, `kept` those that stay as they are where a manifest does not name them."""

    kind: Kind
    message: Any
    without: tuple[str, ...] = ("labels",)
    kept: tuple[str, ...] = OWNERS
    goals: tuple[str, ...] = ()
    """What one can be brought to."""
    new_goal: str = ""
    """That of one which is new and whose manifest names none."""
    pruned: bool = True
    """Whether one that is in no file any more may be removed."""
    batched: bool = True
    """Whether the requests for it can be in a batch."""

    def checked_goal(self, given: Any) -> str:
        """The goal that a manifest names; empty for none. Raises InvalidArgument."""
        if given in (None, ""):
            return ""
        if not self.goals:
            raise InvalidArgument(f"goal: not for {self.kind.plural}: they are as their spec says")
        plain = str(given).upper().rpartition("GOAL_")[2]
        if plain not in self.goals:
            raise InvalidArgument.of("goal", given, f"for {self.kind.plural} one of {', '.join(self.goals)}")
        return plain

    def filled(self, manifest: Manifest) -> Any:
        """What a manifest says, as a message. Raises InvalidArgument."""
        made = self.message()
        given, hidden = manifest.spec, set(self.without) - {"labels"}
        fill(made, given, "spec", without=hidden)
        if manifest.labels:
            if isinstance(given, Mapping) and given.get("labels"):
                raise InvalidArgument("spec.labels: the manifest has labels already: give them once")
            made.labels.update(manifest.labels)
        return made

    def request(self, verb: str, **fields: Any) -> Message:
        """The request of an RPC of the kind."""
        found: Message = getattr(messages_of(self.kind.area, self.kind.field), f"{self.kind.rpc(verb)}Request")(
            **fields
        )
        return found

    def create(self, name: str, filled: Any) -> list[Message]:
        """The requests that make one."""
        return [self.request("Create", name=name, spec=filled)]

    def update(self, present: Any, filled: Any) -> list[Message]:
        """The requests that make one of a present one."""
        for field in self.kept:
            keep(filled, present.spec, field)
        return [self.request("Update", name=present.name, spec=filled)]

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """The requests that bring one to its goal, where it is not there. `present` is None for one that is new,
        `after` is what it is once it has its spec; without a goal it is brought to what was asked for last."""
        return []

    def drifts(self, present: Any) -> Sequence[str]:
        """How one differs from what was brought about, which doing it again puts right."""
        return ()

    def goal_of(self, present: Any) -> str:
        """What one is to be."""
        return ""

    def remove(self, present: Any) -> Message:
        """The request that takes one away."""
        return self.request("Delete", name=present.name)

    def labels_of(self, resource: Any) -> dict[str, str]:
        """The labels of one."""
        return dict(resource.spec.labels)

    def shown(self, resource: Any) -> dict[str, Any]:
        """What a manifest's spec says of one."""
        return plain(resource.spec, self.without)

    async def found(self, gateway: Gateway, names: Sequence[str]) -> Sequence[Any]:
        """Those that there are, with all that is compared of those with these names."""
        return await gateway.list(self.kind)

    def made(self, name: str, filled: Any, present: Any) -> Any:
        """What one will be; None where the gateway says it, when it judges the requests."""
        return None

    def differs(self, present: Any, after: Any) -> bool:
        """Whether one changes, where the gateway does not say it."""
        return False

    def key(self, resource: Any) -> str:
        """The name of one in a manifest."""
        return key_of(self.kind, resource)

    def owned(self, resource: Any) -> bool:
        """Whether one comes and goes with another resource, which then has the manifest."""
        return False


@dataclass(frozen=True, slots=True)
class ClusterForm(Form):
    """The form of clusters, which run or are stopped."""

    def goal_of(self, present: Any) -> str:
        """What one was asked to be."""
        if not self._steered(present):
            return ""
        return STOPPED if word(ClusterState, present.status.state) in ("STOPPING", "STOPPED") else RUNNING

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """The requests that bring one to its goal."""
        if goal and not self._steered(after):
            raise InvalidArgument.of("goal", goal, "none for external broker clusters: nobody here runs them")
        made = RUNNING if self.kind is kinds.BROKER_CLUSTERS else STOPPED  # as one is at its creation
        now = made if present is None else self.goal_of(present)
        return [] if goal in ("", now) else [self.request("Start" if goal == RUNNING else "Stop", name=name)]

    def owned(self, resource: Any) -> bool:
        """Whether a dedicated connector has it."""
        origin = resource.spec.origin
        return (origin.api, origin.scope) == ("keelman", "dedicated_connector")

    def _steered(self, cluster: Any) -> bool:
        return self.kind is kinds.WORKER_CLUSTERS or cluster.spec.WhichOneof("kind") == "managed"


@dataclass(frozen=True, slots=True)
class AppliedForm(Form):
    """The form of topics and definitions, which operations bring about."""

    goal_enum: Any = None

    def goal_of(self, present: Any) -> str:
        """What one was asked to be."""
        return word(self.goal_enum, present.goal)

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """The requests that bring one to its goal."""
        asked = ABSENT if present is None else self.goal_of(present)
        wanted = goal or asked
        is_behind = after.generation != after.status.applied_generation
        is_off = present is not None and bool(self.drifts(present))
        if wanted == asked and (wanted == ABSENT or not (is_behind or is_off)):
            return []
        return [self.request("Apply", name=name, goal=_number(self.goal_enum, wanted))]

    def drifts(self, present: Any) -> Sequence[str]:
        """What applying it again puts right."""
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
        """The request, which leaves alone what it stands for."""
        keep_field = "keep_topic" if self.kind is kinds.TOPICS else "keep_connector"
        return self.request("Delete", name=present.name, **{keep_field: True})


@dataclass(frozen=True, slots=True)
class DedicatedForm(Form):
    """The form of dedicated connectors, each of whose changes is an operation."""

    def goal_of(self, present: Any) -> str:
        """What one was asked to be."""
        return word(DedicatedConnectorGoal, present.goal)

    def steer(self, name: str, goal: str, present: Any, after: Any) -> list[Message]:
        """The requests that bring one to its goal."""
        if present is None and goal == PAUSED:
            raise InvalidArgument.of("goal", goal, "RUNNING for a new one: it can be paused once it has run")
        if present is None or not goal or goal == self.goal_of(present):
            return []
        return [self.request("Pause" if goal == PAUSED else "Resume", name=name)]


def keep(filled: Any, present: Any, field: str) -> None:
    """Sets a field that is not set as it is at present."""
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
    """What a message says, as a manifest writes it: without what is not set; maps by their keys."""
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return {key: whole_numbers(value) for key, value in found.items() if key not in without}


def _number(enum: Any, text: str) -> int:
    return int(next(value for value in enum.values() if value and word(enum, value) == text))
