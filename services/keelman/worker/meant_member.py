"""Has a request that another worker sent to the leader done only by the member that it was meant for.

The sender gives up when leadership changes and tries the new leader. A leader that was frozen meanwhile finds the
request on waking: done late, it would undo changes that clients have made since.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

HEADER = "x-keelman-leader"
NO_MEMBER = "-"
"""In place of the id of a worker that has lost its place in the group: no member has this one."""
_member: ContextVar[str] = ContextVar("member", default="")


def begin(headers: Mapping[str, str]) -> None:
    """Begins a request; the header names the member that it is meant for."""
    _member.set(headers.get(HEADER, ""))


def keep_to(member: str) -> None:
    """Fixes the member for a request of another worker that names none, as those of Java's do: it is meant for the
    member that this worker is when it comes. A worker without membership then, with an empty `member`, does not do it
    under a later membership."""
    if not _member.get():
        _member.set(member or NO_MEMBER)


def meant_for(member: str) -> bool:
    """Returns whether a worker that is this member may do it; any may do a request that names none."""
    return _member.get() in ("", member)
