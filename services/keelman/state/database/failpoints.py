"""Defines named points between the steps of writes, plans and sessions, at which a test lets this process die.

KEELMAN_FAILPOINT names one, and KEELMAN_FAILPOINT_FILE a file: once the file exists, the process ends at that point as
by kill -9, after the number of passages in the file. Without them a point costs one comparison.
"""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

NAMES = (
    "nodes-doubted", "relay-taken", "leads",
    "write-begun", "change-made", "answer-kept", "statuses-derived", "rows-added", "rows-changed", "rows-deleted",
    "events-added", "revision-counted", "committed", "snapshot-advanced", "listeners-told", "answer-due",
    "plan-made", "plan-placed", "plan-forgot", "plan-noted", "plan-kept", "plan-stored",
    "session-numbered", "session-registered", "session-begun", "assignments-due", "assignments-sent",
    "report-come", "report-folded", "report-stored",
    "plugin-received", "plugin-chunked", "plugin-stored", "plugin-forgotten",
)  # fmt: skip
OPERATIONS = (
    "operations-led", "operation-begun", "step-begun", "step-tried", "step-ended", "step-failed", "operation-turned",
    "undo-tried", "undo-ended", "operation-ended", "operations-forgotten",
)  # fmt: skip
"""Between the writes and the actions of the runner of operations."""
ON_BROKERS = ("topic-created", "topic-grown", "topic-configured", "topic-deleted")
ON_WORKERS = ("connector-written", "connector-steered", "connector-deleted", "connector-put-back")
"""Between an operation's call of brokers or workers and its record of the result."""
DEDICATED = ("dedicated-workers-written", "dedicated-stopped", "dedicated-deleted")
"""Between the writes of an operation on a dedicated connector and its record of them."""
AUTOSCALING = ("scale-written",)
"""Between the write of an operation that scales and its record of that."""
IMPORTS = ("import-fetched", "plugin-stored", "import-stored")
"""Between a plugin import's fetch and store and its record of these."""
_ACTIVE = os.environ.get("KEELMAN_FAILPOINT", "")
_FILE = os.environ.get("KEELMAN_FAILPOINT_FILE", "")
_passages = itertools.count()


def hit(name: str) -> None:
    """Ends the process if this is the named point and its file exists; does nothing else."""
    if name != _ACTIVE:
        return
    if _FILE and Path(_FILE).exists() and next(_passages) >= int(Path(_FILE).read_text() or 0):
        os.kill(os.getpid(), signal.SIGKILL)
