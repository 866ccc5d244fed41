"""Operations: work in steps on another resource, done by the operations' runner (keelman.state.operations)."""

from __future__ import annotations

import dataclasses
from typing import Any

from keelman.api.connect.v1 import operation_pb2
from keelman.api.connect.v1 import operation_service_pb2 as pb
from keelman.api.connect.v1 import operation_service_pb2_grpc as grpc
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation
from keelman.rpc.mapping import message_of
from keelman.state.nouns.dedicated_wire import change_message
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.checks import present
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, newest_page, writing
from keelman.state.resources.snapshot import OPERATION
from keelman.state.resources.transaction import Transaction

MAX_REASON = 1024
ASKED = "it was canceled by a user"


def operation_message(operation: Operation) -> operation_pb2.Operation:
    """Returns an operation as users and events see it."""
    change, rollback = change_message(operation), _rollback(operation)
    return message_of(operation_pb2.Operation, operation, change=change, rollback=rollback)


def _rollback(operation: Operation) -> operation_pb2.OperationRollback.ValueType:
    if operation.back_time is None:
        return operation_pb2.OPERATION_ROLLBACK_UNSPECIFIED
    if not operation.has_ended:
        return operation_pb2.OPERATION_ROLLBACK_RUNNING
    return operation_pb2.OPERATION_ROLLBACK_FAILED if operation.back_failed else operation_pb2.OPERATION_ROLLBACK_DONE


CONTENT = ("steps", "origin", "message", "error", "end_time", "back_time", "back_failed", "cancel_reason")
NOUN = Noun(Operation, operation_message, {"content": CONTENT, "spec": "facts"})


def with_operation(fields: dict[str, Any], operation: Operation | None) -> dict[str, Any]:
    """Returns the fields of an answer to a request that may have begun an operation."""
    return fields if operation is None else fields | {"operation": operation_message(operation)}


def cancel(tx: Transaction, request: pb.CancelOperationRequest) -> Operation:
    """Stores the request to end an operation."""
    if len(request.reason) > MAX_REASON:
        raise InvalidArgument.of("reason", f"{request.reason[:20]}...", f"at most {MAX_REASON} characters")
    operation = present(tx, Operation, request.name, request.etag)
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
    operation = present(tx, Operation, request.name, request.etag)
    if not operation.has_ended:
        raise FailedPrecondition(
            f"operation {operation.name} has not ended: cancel it first",
            reason="OPERATION_UNDER_WAY",
            metadata={"operation": operation.name, "kind": operation.target.noun, "name": operation.target.name},
        )
    tx.drop(OPERATION, operation.name)
    return operation


class OperationApi(NounApi[NounParts], grpc.OperationServiceServicer):
    """Operations; lists have the newest first."""

    noun = OPERATION
    GetOperation, ListOperations = get, list_page

    @writing()
    def CancelOperation(self, tx: Transaction, request: pb.CancelOperationRequest) -> Operation:
        """Has an operation end early."""
        return cancel(tx, request)

    @writing()
    def DeleteOperation(self, tx: Transaction, request: pb.DeleteOperationRequest) -> Operation:
        """Forgets an operation that has ended."""
        return delete(tx, request)

    def _page(self, request: pb.ListOperationsRequest) -> tuple[list[Operation], str]:
        def is_wanted(operation: Operation) -> bool:
            return (
                request.target.noun in ("", operation.target.noun)
                and request.target.name in ("", operation.target.name)
                and request.kind in (0, operation_pb2.OperationKind.Value(f"OPERATION_KIND_{operation.kind}"))
                and request.state in (0, operation_pb2.OperationState.Value(f"OPERATION_STATE_{operation.state}"))
            )

        return newest_page(self._snapshot.names(OPERATION), self._snapshot.operations, request, is_wanted)

    def _shown(self, operation: Operation, request: Any) -> operation_pb2.Operation:
        return operation_message(operation)

    def _fields(self, operation: Operation, tx: Transaction) -> dict[str, Any]:
        return {OPERATION: operation_message(operation)}


API = OperationApi
