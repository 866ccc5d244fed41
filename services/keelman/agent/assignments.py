"""Keeps this node's last assignment on disk, fenced by generation, so that the agent continues by itself."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path

from google.protobuf import json_format

from keelman.agent.step import may_replace
from keelman.api.node.v1.session_service_pb2 import Assignments as Message
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.model.errors import Conflict
from keelman.runtime.home import write_json
from keelman.runtime.logs.logging import get_logger

log = get_logger()
KEPT_FENCES = 1000
"""For workloads that are gone, the newest: the sender of an older assignment is behind by seconds, and not by so many
removals of one node."""


class Assignments:
    """The node's workloads by name. `known` is False until a complete set was received, now or by an earlier agent."""

    def __init__(self, path: Path) -> None:
        self.workloads: dict[str, Workload] = {}
        self.known = False
        self._path = path
        self._fences: dict[str, tuple[str, int]] = {}

    def load(self) -> None:
        """Loads the assignment that an earlier agent kept. A file that cannot be read counts as absent: a session fills
        it."""
        try:
            document = json.loads(self._path.read_bytes())
            workloads = [
                json_format.ParseDict(w, Workload(), ignore_unknown_fields=True) for w in document["workloads"]
            ]
            fences = {name: (str(uid), int(generation)) for name, (uid, generation) in document["fences"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, json_format.ParseError) as error:
            log.warning("assignments_unreadable", path=str(self._path), error=repr(error))
            return
        self.workloads = {w.name: w for w in workloads}
        self._fences = fences
        self.known = True

    def apply(self, message: Message) -> None:
        """Applies a complete set or a change and keeps the result. An older generation of a workload is ignored."""
        named: dict[str, Workload] = {} if message.complete else dict(self.workloads)
        for workload in message.workloads:
            if workload.name.strip("./") == "":
                log.error("name_ignored", workload=workload.name)  # it would be no folder of its own
                continue
            new = (workload.uid, workload.generation)
            if may_replace(self._fences.get(workload.name), new):
                self._fences[workload.name] = new
                named[workload.name] = _bare(workload)
            else:
                log.warning("older_assignment_ignored", workload=workload.name, generation=workload.generation)
                if workload.name in self.workloads:
                    named[workload.name] = self.workloads[workload.name]
        for name in message.removed:
            named.pop(name, None)
        gone = self.workloads.keys() - named.keys()
        self.workloads, self.known = named, True
        self._forget_fences(gone)
        self._save()

    def _forget_fences(self, gone: Set[str]) -> None:
        """Keeps the fences of the workloads that went last, and of all present ones."""
        for name in sorted(gone & self._fences.keys()):
            self._fences[name] = self._fences.pop(name)
        former = [name for name in self._fences if name not in self.workloads]
        for name in former[:-KEPT_FENCES]:
            del self._fences[name]

    def _save(self) -> None:
        document = {
            "workloads": [json_format.MessageToDict(w) for w in self.workloads.values()],
            "fences": {name: list(fence) for name, fence in self._fences.items()},
        }
        try:
            write_json(self._path, document)
        except OSError as error:
            log.error("assignments_not_kept", path=str(self._path), error=str(error))


class AssignmentVersions:
    """Follows the versions of one session's assignments."""

    def __init__(self) -> None:
        self._version: int | None = None

    def follow(self, message: Message) -> None:
        """Takes a message's version. Raises Conflict for a gap, after which the session is worthless."""
        if not message.complete and message.from_version != self._version:
            raise Conflict(
                f"assignments begin at version {message.from_version}, this session is at {self._version}",
                reason="ASSIGNMENTS_GAP",
            )
        self._version = message.to_version


def _bare(workload: Workload) -> Workload:
    bare = Workload()
    bare.CopyFrom(workload)
    bare.ClearField("status")
    return bare
