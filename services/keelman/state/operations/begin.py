"""Begins operations: in the transaction of the request that needs one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from keelman.model.annotations import Origin
from keelman.model.errors import FailedPrecondition
from keelman.model.operation import Operation, OperationKind, OperationTarget, Step
from keelman.rpc.actors import actor
from keelman.state.database.failpoints import hit
from keelman.state.database.times import micros
from keelman.state.resources.transaction import Transaction


def begin(
    tx: Transaction,
    kind: OperationKind,
    target: OperationTarget,
    steps: Sequence[str],
    facts: Mapping[str, Any],
    *,
    origin: Origin | None = None,
) -> Operation:
    """Stores a new operation with the rest of the transaction; the runner does its steps. `facts` is JSON for them.

    Raises FailedPrecondition (OPERATION_UNDER_WAY) while the target has another that has not ended.
    """
    check_no_operation(tx, target.noun, target.name)
    operation = Operation(
        _new_name(tx), str(uuid.uuid4()), tx.now, tx.now, kind, target, tuple(Step(name) for name in steps), origin,
        facts=facts, actor=actor(),
    )  # fmt: skip
    operation = tx.put(operation)
    hit("operation-begun")
    return operation


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
    """Returns a name that sorts after those of earlier operations."""
    return f"op-{micros(tx.now):014x}-{os.urandom(2).hex()}"
