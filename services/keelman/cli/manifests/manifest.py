"""Manifests: the wanted state of one resource, and the place of its document."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.cli.exits import exit_code_of, in_one_line
from keelman.cli.kinds import Kind
from keelman.model.errors import InvalidArgument, KeelmanError

SYSTEMS = ("uid", "create_time", "update_time", "generation", "etag", "status")
"""Fields that the system sets: ignored in a manifest, which may have them from `get -o yaml`."""
KEYS = ("kind", "name", "labels", "goal", "spec")
HIDDEN = "[hidden]"
"""The text in place of a secret value: the stored value stays."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The place of a manifest: the file, the number of the document in it from 1, and its first line."""

    file: str
    number: int = 1
    line: int = 1

    def __str__(self) -> str:
        return f"{self.file}: document {self.number} (line {self.line})"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One resource as a file wants it. `spec` is as it was written, `goal` empty if none is named."""

    kind: Kind
    name: str
    place: FilePlace
    labels: Mapping[str, str] = field(default_factory=dict)
    goal: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The kind and name of the resource, for people."""
        return f"{self.kind.singular}/{self.name}"

    @property
    def key(self) -> tuple[str, str]:
        """The key that is unique among all manifests."""
        return self.kind.plural, self.name


class ManifestsRefused(Exception):
    """Manifests are refused, with one text for each error; nothing was changed. The exit code is the first error's."""

    def __init__(self, wrong: Sequence[tuple[str, KeelmanError]]) -> None:
        self.lines = [in_one_line(f"{where}: {error.message}" if where else error.message) for where, error in wrong]
        self.exit_code = exit_code_of(wrong[0][1])
        super().__init__("; ".join(self.lines))


class Wrong:
    """Collects the errors in manifests, so that all of them are reported at once."""

    def __init__(self) -> None:
        self._found: list[tuple[str, KeelmanError]] = []

    def add(self, where: object, error: KeelmanError) -> None:
        """Adds an error of a manifest, or of a file."""
        self._found.append((str(where), error))

    def check(self) -> None:
        """Raises Refused if there is any error."""
        if self._found:
            raise ManifestsRefused(self._found)


def where(manifest: Manifest) -> str:
    """Returns the place of a manifest and its resource, as errors name it."""
    return f"{manifest.place}: {manifest.title}"


def unknown(path: str, key: str, legal: Iterable[str]) -> InvalidArgument:
    """Returns the error for an unknown field, with the nearest and the legal ones."""
    names = sorted(legal)
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    full = f"{path}.{key}" if path else key
    return InvalidArgument(f"{full}: unknown field: {hint}one of {', '.join(names)}", metadata={"field": full})
