"""Writes docs/authorization.md from the gateway's tables of rights, so the page cannot differ from the code.

`python tools/document_authorization.py` writes it; a unit test fails while it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from keelman.gateway.access.matrix import BAD, CALLERS, NOBODY, Row, key_rows, route_rows, rpc_rows
from keelman.model.access.roles import Role

PAGE = Path(__file__).resolve().parent.parent / "docs" / "authorization.md"
HEAD = """# Who may call what

Generated from `services/keelman/gateway/access/rights.py` by `tools/document_authorization.py`; do not edit. How
callers are named: [access.md](access.md).

It holds where the gateway has an access file. Without one everybody may do everything on loopback; off loopback all but
health is refused with 403, `CLOSED`, unless `gateway.open_access` is set.

| cell | meaning |
|---|---|
| yes | let in |
| own | let in; the answer has what belongs to the caller's worker clusters. A request for another cluster is refused |
| 401 | `UNAUTHENTICATED`: reasons `NO_CREDENTIALS`, `UNKNOWN_TOKEN`, `UNKNOWN_USER`, `BAD_HEADER` |
| 403 | `PERMISSION_DENIED`: reasons `ROLE` and `OTHER_CLUSTER` |

*of it* and *of another* are operators of one worker cluster: the one that a call is about, and another one. A viewer or
an admin of some clusters has its role there in the same way.
"""
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


def page() -> str:
    """The whole page."""
    columns = (NOBODY, BAD, *CALLERS)
    lines = [HEAD, "\n## gRPC\n\n", *_table(columns, "RPC", rpc_rows())]
    lines += [HTTP]
    lines += [*_table(columns, "request", route_rows()), KEYS, _line("operation", "right", *Role), _line(*["---"] * 5)]
    lines += [_line(f"`{call}`", right, *cells.values()) for call, right, cells in key_rows()]
    return "".join(lines)


def _table(columns: tuple[str, ...], first: str, rows: Iterator[Row]) -> Iterator[str]:
    yield _line(first, "right", "on", *columns)
    yield _line(*["---"] * (len(columns) + 3))
    for row in rows:
        yield _line(f"`{row.call}`", row.needs.right or "none", row.needs.scope.text, *(row.cells[c] for c in columns))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
