"""A plugin: a file that workers load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from keelman.model.annotations import Origin
from keelman.model.errors import InvalidArgument


class PluginKind(StrEnum):
    """The format of a plugin's file."""

    ZIP = "ZIP"
    JAR = "JAR"
    WHEEL = "WHEEL"
    TAR_GZ = "TAR_GZ"
    OTHER = "OTHER"
    """Any other file, or a broken one of these formats: it is stored, and cannot be loaded."""


@dataclass(frozen=True, slots=True, order=True)
class PluginClass:
    """A class of a plugin that a configuration can name.

    `type` is Connect's word: source, sink, converter, header_converter, transformation, predicate. `version` is empty
    when the file names none. `path` is the jar or wheel within the file that has it.
    """

    class_name: str
    type: str
    version: str = ""
    language: str = "java"
    path: str = ""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One stored file and its content. It never changes; description, labels and extra do."""

    NOUN: ClassVar[str] = "plugin"

    name: str
    """Its key among all: name/version."""
    uid: str
    create_time: datetime
    update_time: datetime
    file_name: str
    kind: PluginKind
    size_bytes: int
    sha256: str
    md5: str
    classes: tuple[PluginClass, ...] = ()
    problems: tuple[str, ...] = ()
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    etag: str = ""
    storage: str = "database"
    """The place of its file."""
    origin: Origin | None = None
    extra: Mapping[str, Any] | None = None
    """JSON that is stored and returned, and never read."""

    @property
    def plugin(self) -> str:
        """Its name without the version."""
        return self.name.partition("/")[0]

    @property
    def version(self) -> str:
        """Its version."""
        return self.name.partition("/")[2]


_LEGAL_VERSION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._+-]{0,61}[A-Za-z0-9])?")


def checked_version(field: str, version: str) -> str:
    """Returns the version; raises InvalidArgument when it is not legal for a plugin."""
    if not _LEGAL_VERSION.fullmatch(version):
        legal = "1 to 63 letters, digits, '.', '_', '+' or '-', beginning and ending with a letter or digit"
        raise InvalidArgument.of(field, version, legal)
    return version


def plugin_key(name: str, version: str) -> str:
    """Returns the key of a plugin's version: name/version."""
    return f"{name}/{version}"
