"""Shows the admission of each caller to each call, from the tables of rights: for docs/authorization.md and for the
test that checks every cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keelman.gateway.access.rights import MANAGED_CONNECT, ROUTES, RPCS, Needs
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import Right, Role

NOBODY, BAD = "no caller", "bad token"
CALLERS = {
    "viewer": GatewayCaller("viewer", Role.VIEWER),
    "operator": GatewayCaller("operator", Role.OPERATOR),
    "operator of it": GatewayCaller("operator of it", Role.OPERATOR, frozenset({"mine"})),
    "operator of another": GatewayCaller("operator of another", Role.OPERATOR, frozenset({"other"})),
    "admin": GatewayCaller("admin", Role.ADMIN),
}
"""Callers by column: two of them have their role for one worker cluster, the call's own and another one."""
YES, OWN, UNKNOWN, DENIED = "yes", "own", "401", "403"
"""Admitted; admitted, and sees only its own clusters; unknown; known and not allowed."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A call, its needs, and its result for each caller, by column."""

    call: str
    needs: Needs
    cells: dict[str, str]


def rpc_rows() -> Iterator[MatrixRow]:
    """Yields a row for each RPC."""
    for method, needs in RPCS.items():
        yield MatrixRow(method, needs, _cells(needs))


def route_rows() -> Iterator[MatrixRow]:
    """Yields two rows for each route, for requests that only read and for others; one row if their needs are equal."""
    for path, needs in ROUTES.items():
        if needs.reads == needs.writes:
            yield MatrixRow(f"any {path}", needs.reads, _cells(needs.reads))
        else:
            yield MatrixRow(f"GET {path}", needs.reads, _cells(needs.reads))
            yield MatrixRow(f"POST {path}", needs.writes, _cells(needs.writes))


def key_rows() -> Iterator[tuple[str, Right, dict[str, str]]]:
    """Yields a row for each operation of the managed Connect API, with its result for an access key of each role."""
    for (method, path), right in MANAGED_CONNECT.items():
        yield f"{method} /v1/{path}", right, {role.value: YES if role.has(right) else DENIED for role in Role}


def _cells(needs: Needs) -> dict[str, str]:
    if needs.right is None:
        return dict.fromkeys((NOBODY, BAD, *CALLERS), YES)
    return {NOBODY: UNKNOWN, BAD: UNKNOWN} | {name: _cell(needs, caller) for name, caller in CALLERS.items()}


def _cell(needs: Needs, caller: GatewayCaller) -> str:
    assert needs.right is not None
    if not caller.has(needs.right):
        return DENIED
    if not caller.is_limited or needs.scope.is_any:
        return YES
    if needs.scope.is_list:
        return OWN
    return YES if needs.scope.is_cluster and caller.sees("mine") else DENIED
