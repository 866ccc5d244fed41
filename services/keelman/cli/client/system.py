"""Reads and writes <home>/system.json, by which other commands reach or stop a `keelman up`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from keelman.runtime.home import Home, write_file
from keelman.runtime.processes.process_trees import start_of


@dataclass(frozen=True, slots=True)
class Process:
    """A process; its start time distinguishes it from a later process with the same id."""

    pid: int
    start: str

    @classmethod
    def of(cls, pid: int) -> Process:
        """Returns the present process with this id; `start` is empty if there is none."""
        return cls(pid, start_of(pid) or "")

    @property
    def alive(self) -> bool:
        """True while this process runs (a zombie does not)."""
        return bool(self.start) and start_of(self.pid) == self.start


@dataclass(frozen=True, slots=True)
class SystemService:
    """One service of the system. Address is host:port, log a path."""

    name: str
    address: str
    log: str
    process: Process


@dataclass(frozen=True, slots=True)
class System:
    """One `keelman up`. Addresses are host:port; `http` is a URL; `ready` is True once all of its parts run."""

    up: Process
    home: str
    node: str
    gateway: str
    http: str
    state: str
    agent: str
    ready: bool = False
    services: list[SystemService] = field(default_factory=list)

    def write(self, home: Home) -> None:
        """Replaces the file in one step, so that a reader never sees half of it."""
        home.root.mkdir(parents=True, exist_ok=True)
        write_file(home.system, (json.dumps(asdict(self), indent=2) + "\n").encode())


def read_system(home: Home) -> System | None:
    """Returns the record of the home's last `keelman up`, running or ended; None if there is none."""
    try:
        document: dict[str, Any] = json.loads(home.system.read_text(encoding="utf-8"))
        document["up"] = Process(**document["up"])
        document["services"] = [
            SystemService(**{**s, "process": Process(**s["process"])}) for s in document["services"]
        ]
        return System(**document)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def running_system(home: Home) -> System | None:
    """Returns the home's system while its `keelman up` runs; else None."""
    system = read_system(home)
    return system if system is not None and system.up.alive else None
