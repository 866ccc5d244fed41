"""Manifests: what one resource is to be, and where that is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.cli.exits import exit_code_of, in_one_line
from keelman.cli.kinds import Kind
from keelman.model.errors import InvalidArgument, KeelmanError

SYSTEMS = ("uid", "create_time", "update_time", "generation", "etag", "status")
"""What the system says of a resource: where a manifest has it, as `get -o yaml` prints it, it says nothing."""
KEYS = ("kind", "name", "labels", "goal", "spec")
HIDDEN = "[hidden]"
"""In place of what is secret: as it is stored."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a manifest is: the file, the number of the document in it from 1, and its first line."""

    file: str
    number: int = 1
    line: int = 1

    def __str__(self) -> str:
        return f"{self.file}: document {self.number} (line {self.line})"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One resource as a file wants it. `spec` is as it was written, `goal` empty where none is named."""

    kind: Kind
    name: str
    place: FilePlace
    labels: Mapping[str, str] = field(default_factory=dict)
    goal: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How people name the resource."""
        return f"{self.kind.singular}/{self.name}"

    @property
    def key(self) -> tuple[str, str]:
        """What no two manifests have in common."""
        return self.kind.plural, self.name


class Refused(Exception):
    """Manifests are refused, with one text for each error; nothing was changed. Its exit code is that of the first
    error."""

    def __init__(self, wrong: Sequence[tuple[str, KeelmanError]]) -> None:
        self.lines = [in_one_line(f"{where}: {error.message}" if where else error.message) for where, error in wrong]
        self.exit_code = exit_code_of(wrong[0][1])
        super().__init__("; ".join(self.lines))


class Wrong:
    """Gathers what is wrong with manifests, so that all of it is reported at once."""

    def __init__(self) -> None:
        self._found: list[tuple[str, KeelmanError]] = []

    def add(self, where: object, error: KeelmanError) -> None:
        """Notes an error of a manifest, or of a file."""
        self._found.append((str(where), error))

    def check(self) -> None:
        """Raises Refused where anything is wrong."""
        if self._found:
            raise Refused(self._found)


def where(manifest: Manifest) -> str:
    """The place of a manifest and the resource that it is about, as errors name it."""
    return f"{manifest.place}: {manifest.title}"


def unknown(path: str, key: str, legal: Iterable[str]) -> InvalidArgument:
    """The error for a field that there is not: it names the nearest and the legal ones."""
    known = sorted(legal)
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    full = f"{path}.{key}" if path else key
    return InvalidArgument(f"{full}: there is no such field: {hint}one of {', '.join(known)}", metadata={"field": full})
