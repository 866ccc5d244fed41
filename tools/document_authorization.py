"""Prints the tables of docs/authorization.md, made from the gateway's tables of rights.

`make docs` puts them into the site.
"""

from __future__ import annotations

from collections.abc import Iterator

from keelman.gateway.access.matrix import BAD, CALLERS, NOBODY, MatrixRow, key_rows, route_rows, rpc_rows
from keelman.model.access.roles import Role

HTTP = """
## HTTP

A route is for what is below it, too, unless a longer one is. POST stands for every method that does not only read.
Where nothing is needed here, something else is: `/v1` is signed, `/_private` has `gateway.ohara_wipe_token_file`.

"""
KEYS = """
## The managed Connect API

Requests are signed ([managed-connect.md](managed-connect.md)); a key without a role is an admin's, of what is of its
account. Without a signature, or with a wrong one: 403.

"""


def tables() -> str:
    """Returns the tables of the page."""
    columns = (NOBODY, BAD, *CALLERS)
    lines = ["\n## gRPC\n\n", *_table(columns, "RPC", rpc_rows())]
    lines += [HTTP]
    lines += [*_table(columns, "request", route_rows()), KEYS, _line("operation", "right", *Role), _line(*["---"] * 5)]
    lines += [_line(f"`{call}`", right, *cells.values()) for call, right, cells in key_rows()]
    return "".join(lines)


def _table(columns: tuple[str, ...], first: str, rows: Iterator[MatrixRow]) -> Iterator[str]:
    yield _line(first, "right", "on", *columns)
    yield _line(*["---"] * (len(columns) + 3))
    for row in rows:
        yield _line(f"`{row.call}`", row.needs.right or "none", row.needs.scope.text, *(row.cells[c] for c in columns))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(tables(), end="")
