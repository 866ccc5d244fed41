"""The common base of the tests of topic resources: the verbs in short, and a wait for an operation's end."""

from typing import Any

from keelman.api.connect.v1 import operation_pb2, operation_service_pb2, topic_pb2, topic_service_pb2
from support.eventually import eventually

ENDED = (
    operation_pb2.OPERATION_STATE_SUCCEEDED,
    operation_pb2.OPERATION_STATE_FAILED,
    operation_pb2.OPERATION_STATE_CANCELED,
)
PRESENT, ABSENT = topic_pb2.TOPIC_GOAL_PRESENT, topic_pb2.TOPIC_GOAL_ABSENT
pb = topic_service_pb2


class Operations:
    """Operations of a state service, also through a gateway; `operations` is the stub of their service."""

    def __init__(self, operations: Any) -> None:
        self.operations = operations

    async def operation(self, name: str) -> operation_pb2.Operation:
        request = operation_service_pb2.GetOperationRequest(name=name)
        return (await self.operations.GetOperation(request)).operation

    async def ended(self, name: str, *, seconds: float = 300.0) -> operation_pb2.Operation:
        """The operation at its end."""

        async def has_ended() -> operation_pb2.Operation | None:
            operation = await self.operation(name)
            return operation if operation.state in ENDED else None

        try:
            return await eventually(has_ended, seconds=seconds, what=f"{name} ends")
        except AssertionError as late:
            raise AssertionError(await self.operation(name)) from late


class Topics(Operations):
    """The topics of one broker cluster, also through a gateway."""

    def __init__(self, clients: Any, cluster: str) -> None:
        super().__init__(clients.operations)
        self.clients, self.cluster = clients, cluster

    async def create(self, name: str, request_id: str = "", **spec: Any) -> topic_pb2.Topic:
        topic_spec = topic_pb2.TopicSpec(**({"broker_cluster": self.cluster} | spec))
        request = pb.CreateTopicRequest(name=name, spec=topic_spec, request_id=request_id)
        return (await self.clients.topics.CreateTopic(request)).topic

    async def update(self, name: str, *paths: str, etag: str = "", **spec: Any) -> topic_pb2.Topic:
        request = pb.UpdateTopicRequest(name=name, etag=etag, spec=topic_pb2.TopicSpec(**spec))
        request.update_mask.paths.extend(paths or spec)
        return (await self.clients.topics.UpdateTopic(request)).topic

    async def get(self, name: str) -> topic_pb2.Topic:
        return (await self.clients.topics.GetTopic(pb.GetTopicRequest(name=name))).topic

    async def begin(self, name: str, goal: topic_pb2.TopicGoal.ValueType = PRESENT, **more: Any) -> str:
        """Requests an operation; returns its name."""
        answer = await self.clients.topics.ApplyTopic(pb.ApplyTopicRequest(name=name, goal=goal, **more))
        return answer.operation.name

    async def apply(self, name: str, goal: topic_pb2.TopicGoal.ValueType = PRESENT) -> operation_pb2.Operation:
        return await self.ended(await self.begin(name, goal))

    async def delete(self, name: str, *, keep_topic: bool = False) -> None:
        await self.clients.topics.DeleteTopic(pb.DeleteTopicRequest(name=name, keep_topic=keep_topic))


def states(operation: operation_pb2.Operation) -> dict[str, str]:
    """The state of each step, by its name."""
    word = operation_pb2.OperationStepState.Name
    return {step.name: word(step.state).removeprefix("OPERATION_STEP_STATE_") for step in operation.steps}
