"""The fields of everything that the state service stores under a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Resource:
    """The fields of every resource. A `uid` is never used twice; times are aware UTC."""

    name: str
    uid: str
    create_time: datetime
    update_time: datetime
