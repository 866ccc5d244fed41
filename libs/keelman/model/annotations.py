"""Facts beside a resource that reach no process: its description, its labels, its owner in another API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner of a resource under a name of its own: an API, a scope in it and a key that is unique there."""

    api: str
    scope: str
    key: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """A cluster's description and labels, and data of APIs built on ours: none of it reaches a process."""

    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    extra: Mapping[str, Any] | None = None
    """JSON that is stored and returned, and never read."""


NO_ANNOTATIONS = Annotations()
