"""Names the methods of connectors that a process is in, in any of its threads: nothing is noted for it beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

from keelman.connect.contract import ReturnCheck, background_calls

_CALL = ReturnCheck.of.__code__


def calls_under_way() -> str:
    """All of them, e.g. `SeaReader.read, SeaWriter.write`; empty for none. Those that connectors have threads of their
    own for count, and not who waits for them."""
    return ", ".join(dict.fromkeys(background_calls() or _called()))


def _called() -> Iterator[str]:
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None and frame.f_code is not _CALL:
            frame = frame.f_back
        if frame is not None:
            yield frame.f_locals["self"].named(frame.f_locals["method"])
