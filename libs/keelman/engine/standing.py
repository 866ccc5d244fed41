"""Where a thread stands that does not come back: the method of a connector that it is in."""

from __future__ import annotations

from types import FrameType

OURS = ("keelman.engine", "keelman.connect.answers", "threading")


def method_in(frame: FrameType) -> str:
    """The outermost call that is not the engine's, e.g. `SeaReader.read (sea.py:12)`; its line is where it is now."""
    found = ""
    now: FrameType | None = frame
    while now is not None:
        if not str(now.f_globals.get("__name__", "")).startswith(OURS):
            found = f"{now.f_code.co_qualname} ({now.f_code.co_filename.rpartition('/')[2]}:{now.f_lineno})"
        now = now.f_back
    return found
