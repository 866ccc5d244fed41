"""Operations: work in steps on another resource, done by the operations' runner (keelman.state.operations)."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import operation_pb2, origin_pb2
from keelman.api.connect.v1 import operation_service_pb2 as pb
from keelman.api.connect.v1 import operation_service_pb2_grpc as grpc
from keelman.model.cluster import Origin
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Failure, Operation, OperationKind, OperationState, Step, Target
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.dedicated.wire import change_message
from keelman.state.failpoints import hit
from keelman.state.nouns.checks import check_etag
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, read
from keelman.state.nouns.serving import newest_page, verb
from keelman.state.snapshot import OPERATION

if TYPE_CHECKING:
    from datetime import datetime

    from keelman.state.store import Transaction

MAX_REASON = 1024
ASKED = "somebody asked it to end"


class OperationRow(SQLModel, table=True):
    """An operation; `target`, `content` and `spec` are JSON: what it is about, where it stands, its facts."""

    __tablename__ = "operation"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    kind: str
    state: str
    target: dict[str, Any] = Field(sa_column=json_column())
    content: dict[str, Any] = Field(sa_column=json_column())
    spec: dict[str, Any] = Field(sa_column=json_column())


@dataclass(frozen=True, slots=True)
class _Content:
    steps: tuple[Step, ...] = ()
    origin: Origin | None = None
    message: str = ""
    error: Failure | None = None
    end_time: int | None = None
    back_time: int | None = None
    back_failed: bool = False
    cancel_reason: str = ""


def to_row(operation: Operation) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": operation.name, "uid": operation.uid, "create_time": micros(operation.create_time),
        "update_time": micros(operation.update_time), "revision": int(operation.etag or 0),
        "kind": str(operation.kind), "state": str(operation.state), "target": plain(operation.target),
        "content": {
            "steps": [plain(step) for step in operation.steps],
            "origin": None if operation.origin is None else plain(operation.origin), "message": operation.message,
            "error": None if operation.error is None else plain(operation.error),
            "end_time": None if operation.end_time is None else micros(operation.end_time),
            "back_time": None if operation.back_time is None else micros(operation.back_time),
            "back_failed": operation.back_failed, "cancel_reason": operation.cancel_reason,
        },
        "spec": dict(operation.facts),
    }  # fmt: skip


def from_row(row: OperationRow) -> Operation:
    """The operation of a row."""
    steps = tuple(_step(one) for one in row.content["steps"])
    content = read(_Content, {**row.content, "steps": ()})
    return Operation(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        etag=str(row.revision), kind=OperationKind(row.kind), target=read(Target, row.target), steps=steps,
        origin=content.origin, state=OperationState(row.state), message=content.message, error=content.error,
        end_time=_moment(content.end_time), back_time=_moment(content.back_time),
        back_failed=content.back_failed, cancel_reason=content.cancel_reason, facts=row.spec,
    )  # fmt: skip


def _step(stored: Mapping[str, Any]) -> Step:
    start, end, undo = (_moment(stored.get(name)) for name in ("start_time", "end_time", "undo_time"))
    timeless = {**stored, "start_time": None, "end_time": None, "undo_time": None}
    return dataclasses.replace(read(Step, timeless), start_time=start, end_time=end, undo_time=undo)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


def _timestamp(value: datetime | None) -> Timestamp | None:
    return None if value is None else to_timestamp(value)


def operation_message(operation: Operation) -> operation_pb2.Operation:
    """An operation as users and events see it."""
    error, origin = operation.error, operation.origin
    return operation_pb2.Operation(
        name=operation.name,
        uid=operation.uid,
        create_time=to_timestamp(operation.create_time),
        update_time=to_timestamp(operation.update_time),
        etag=operation.etag,
        kind=operation_pb2.OperationKind.Value(f"OPERATION_KIND_{operation.kind}"),
        target=operation_pb2.OperationTarget(**dataclasses.asdict(operation.target)),
        origin=None if origin is None else origin_pb2.Origin(**dataclasses.asdict(origin)),
        state=operation_pb2.OperationState.Value(f"OPERATION_STATE_{operation.state}"),
        message=operation.message,
        steps=[
            operation_pb2.OperationStep(
                name=step.name,
                state=operation_pb2.OperationStepState.Value(f"OPERATION_STEP_STATE_{step.state}"),
                message=step.message,
                start_time=_timestamp(step.start_time),
                end_time=_timestamp(step.end_time),
                attempts=step.attempts,
            )
            for step in operation.steps
        ],
        error=None if error is None else operation_pb2.OperationError(**dataclasses.asdict(error)),
        end_time=_timestamp(operation.end_time),
        cancel_reason=operation.cancel_reason,
        change=change_message(operation),
        rollback=_rollback(operation),
    )


def _rollback(operation: Operation) -> operation_pb2.OperationRollback.ValueType:
    if operation.back_time is None:
        return operation_pb2.OPERATION_ROLLBACK_UNSPECIFIED
    if not operation.has_ended:
        return operation_pb2.OPERATION_ROLLBACK_RUNNING
    return operation_pb2.OPERATION_ROLLBACK_FAILED if operation.back_failed else operation_pb2.OPERATION_ROLLBACK_DONE


NOUN = Noun(Operation, OperationRow, to_row, from_row, operation_message)


def begin(
    tx: Transaction,
    kind: OperationKind,
    target: Target,
    steps: Sequence[str],
    facts: Mapping[str, Any],
    *,
    origin: Origin | None = None,
) -> Operation:
    """A new operation, stored with the rest of the transaction; the runner does its steps. `facts` is JSON for them.

    Raises FailedPrecondition (OPERATION_UNDER_WAY) while the target has another that has not ended.
    """
    check_no_operation(tx, target.noun, target.name)
    made = Operation(
        _new_name(tx), str(uuid.uuid4()), tx.now, tx.now, kind, target, tuple(Step(name) for name in steps), origin,
        facts=facts,
    )  # fmt: skip
    made = tx.put(made)
    hit("operation-begun")
    return made


def check_no_operation(tx: Transaction, noun: str, name: str) -> None:
    """Raises FailedPrecondition (OPERATION_UNDER_WAY) while a resource has an operation that has not ended."""
    under_way = tx.snapshot.unfinished_operation(noun, name)
    if under_way is not None:
        raise FailedPrecondition(
            f"operation {under_way.name} on {noun.replace('_', ' ')} {name!r} has not ended "
            f"({under_way.message or under_way.state}): wait for its end, or cancel it",
            reason="OPERATION_UNDER_WAY",
            metadata={"operation": under_way.name, "kind": noun, "name": name},
        )


def _new_name(tx: Transaction) -> str:
    """A name that comes after those of earlier operations in their order."""
    return f"op-{micros(tx.now):014x}-{os.urandom(2).hex()}"


def cancel(tx: Transaction, request: pb.CancelOperationRequest) -> Operation:
    """Notes that an operation is to end."""
    if len(request.reason) > MAX_REASON:
        raise InvalidArgument.of("reason", f"{request.reason[:20]}...", f"at most {MAX_REASON} characters")
    operation = tx.snapshot.operation(request.name)
    check_etag(operation.name, request.etag, operation.etag)
    if operation.has_ended:
        raise FailedPrecondition(
            f"operation {operation.name} has ended: {operation.state}", reason="OPERATION_ENDED",
            metadata={"operation": operation.name, "state": str(operation.state)},
        )  # fmt: skip
    if operation.cancel_reason:
        return operation
    return tx.put(dataclasses.replace(operation, cancel_reason=request.reason or ASKED))


def delete(tx: Transaction, request: pb.DeleteOperationRequest) -> Operation:
    """Forgets an operation that has ended."""
    operation = tx.snapshot.operation(request.name)
    check_etag(operation.name, request.etag, operation.etag)
    if not operation.has_ended:
        raise FailedPrecondition(
            f"operation {operation.name} has not ended: cancel it first",
            reason="OPERATION_UNDER_WAY",
            metadata={"operation": operation.name, "kind": operation.target.noun, "name": operation.target.name},
        )
    tx.drop(OPERATION, operation.name)
    return operation


@dataclass(frozen=True, slots=True)
class OperationApi(grpc.OperationServiceServicer):
    """Operations."""

    parts: Parts

    async def GetOperation(self, request: pb.GetOperationRequest, context: Context) -> pb.GetOperationResponse:
        """One operation."""
        return pb.GetOperationResponse(operation=operation_message(self.parts.store.snapshot.operation(request.name)))

    async def ListOperations(self, request: pb.ListOperationsRequest, context: Context) -> pb.ListOperationsResponse:
        """A page of operations, the newest first."""
        snapshot = self.parts.store.snapshot

        def is_wanted(one: Operation) -> bool:
            return (
                request.target.noun in ("", one.target.noun)
                and request.target.name in ("", one.target.name)
                and request.kind in (0, operation_pb2.OperationKind.Value(f"OPERATION_KIND_{one.kind}"))
                and request.state in (0, operation_pb2.OperationState.Value(f"OPERATION_STATE_{one.state}"))
            )

        part, token = newest_page(snapshot.names(OPERATION), snapshot.operations, request, is_wanted)
        return pb.ListOperationsResponse(operations=[operation_message(one) for one in part], next_page_token=token)

    CancelOperation = verb(pb.CancelOperationRequest, pb.CancelOperationResponse, cancel)
    DeleteOperation = verb(pb.DeleteOperationRequest, pb.DeleteOperationResponse, delete)

    def fields(self, made: Operation) -> dict[str, Any]:
        """What an answer has of an operation that was written."""
        return {"operation": operation_message(made)}


def services(parts: Parts) -> list[Service]:
    """The gRPC services of operations."""
    return [service("connect", "OperationService", grpc.add_OperationServiceServicer_to_server, OperationApi(parts))]
