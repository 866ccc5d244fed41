"""The kinds of operations, and how to add a kind.

1. A value of `OperationKind`, in the proto and in keelman.model.operation.
2. A function that returns its `OperationProcedure`, in the room of its noun: its steps by name, each a function from
   the operation to its outcome. A step is idempotent: after a crash it is done again. It returns `Done` (with facts to
   keep) or `Waiting` (it is tried again), or raises: Unavailable, DeadlineExceeded and Conflict are tried again with a
   back-off until the step's deadline; every other error fails the step at once, with its message.
3. A line in keelman.state.operation_kinds, which gives it what its steps use.
4. A caller begins one by `begin` of this room in its transaction, with the names of the steps in their order and JSON
   facts for them; secrets in facts are sealed at rest by the names of their keys.

The runner stores each step before and after it is done. `stored` is called in each of these transactions, so that the
target can store its applied spec, and the end of the operation.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from keelman.model.operation import Operation
from keelman.state.operations.moves import Outcome
from keelman.state.resources.transaction import Transaction

Work: TypeAlias = Callable[[Operation], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class StepWork:
    """The functions that do a step and undo it; None: there is nothing to undo.

    `seconds`: for how long from its begin the step is tried again; None: for the time of the service's settings, and at
    most `at_most`.
    """

    do: Work
    undo: Work | None = None
    seconds: float | None = None
    at_most: float = math.inf


def _always(operation: Operation) -> bool:
    return True


def _nothing(tx: Transaction, operation: Operation) -> None:
    pass


@dataclass(frozen=True, slots=True)
class OperationProcedure:
    """The steps of a kind of operation, and the functions for when one is stored or fails."""

    steps: Mapping[str, StepWork]
    takes_back: Callable[[Operation], bool] = _always
    """Returns whether an operation that failed or was canceled is rolled back, or ends with its effects left in
    place."""
    stored: Callable[[Transaction, Operation], None] = _nothing
    """Called with the operation as it is about to be stored, in the transaction that stores it."""
