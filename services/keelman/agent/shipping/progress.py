"""Keeps how far a log has been delivered to a target: in a file of the agent's, replaced whole."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from keelman.runtime.home import write_json
from keelman.runtime.logs.logging import get_logger

log = get_logger()


@dataclass(frozen=True, slots=True)
class Pending:
    """An object that is being put: it holds the log up to `end`, whatever has been written since."""

    key: str
    end: int
    mine: bool


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """`position`: everything before it in the log is at the target. `inode` identifies the log's file, 0 for none yet.

    `mine`: whether the line before it was delivered. `length`: bytes of the target file with all of it; `target`
    identifies that file.
    """

    position: int = 0
    inode: int = 0
    mine: bool = False
    length: int = 0
    target: int = 0
    pending: Pending | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


def read_progress(file: Path) -> DeliveryProgress | None:
    """Returns the kept position; None when there is nothing that can be read: then the whole log is delivered."""
    try:
        tree = json.loads(file.read_bytes())
        pending = tree.pop("pending")
        return DeliveryProgress(**tree, pending=None if pending is None else Pending(**pending))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.error("log_position_unreadable", file=str(file), error=repr(error))
        return None


def write_progress(file: Path, progress: DeliveryProgress) -> None:
    """Stores it, also over a crash of the host. Raises OSError."""
    write_json(file, progress)
