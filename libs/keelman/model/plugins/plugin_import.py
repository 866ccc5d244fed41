"""Plugin imports: plugins whose files are copied from buckets."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations, Origin
from keelman.model.errors import InvalidArgument
from keelman.model.resource import Resource

VERSION = "1"
"""The version of the plugin of every import."""
MAX_KEY_BYTES = 1024
"""The limit of S3."""
MAX_OBJECT_VERSION = 1024
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

UNKNOWN_CODE = "UnknownError.Unknown"
CODES: Mapping[str, str] = {
    "OBJECT_NOT_FOUND": "PluginError.ObjectNotFound",
    "OBJECT_DENIED": "PluginError.AccessDenied",
    "STEP_DEADLINE": "PluginError.StoreUnreachable",
    "NOT_ZIP": "PluginError.NotZip",
    "NO_CONNECTOR_CLASS": "PluginError.NoConnectorClass",
    "UNSAFE_ARCHIVE": "PluginError.UnsafeArchive",
    "PLUGIN_EMPTY": "PluginError.NotZip",
    "PLUGIN_TOO_LARGE": "PluginError.TooLarge",
    "PLUGIN_QUOTA": "PluginError.TooLarge",
}
"""By the reason of an operation's error: why there is no plugin, as <area>.<cause>."""


class PluginImportState(StrEnum):
    """The state of a plugin import."""

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"


class PluginContent(StrEnum):
    """The format that a request declares for a file; UNSPECIFIED: any."""

    UNSPECIFIED = "UNSPECIFIED"
    JAR = "JAR"
    ZIP = "ZIP"


@dataclass(frozen=True, slots=True)
class PluginSource:
    """An object in a bucket; without a version the newest."""

    bucket: str
    key: str
    version: str = ""
    content: PluginContent = PluginContent.UNSPECIFIED

    def __str__(self) -> str:
        """Returns a text for people."""
        return f"s3://{self.bucket}/{self.key}" + (f" in version {self.version}" if self.version else "")


@dataclass(frozen=True, slots=True)
class PluginImport(Resource):
    """A plugin whose file is copied from a bucket. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "plugin_import"

    source: PluginSource
    annotations: Annotations = NO_ANNOTATIONS
    state: PluginImportState = PluginImportState.CREATING
    code: str = ""
    message: str = ""
    operation: str = ""
    """Its name."""
    size_bytes: int = 0
    sha256: str = ""
    md5: str = ""
    etag: str = ""

    @property
    def plugin_uid(self) -> str:
        """That of its plugin: the same whenever it is fetched again after a crash."""
        return str(uuid.uuid5(uuid.UUID(self.uid), "plugin"))

    @property
    def plugin_origin(self) -> Origin:
        """Whose its plugin is."""
        return Origin("keelman", self.NOUN, self.name)


def code_of(reason: str) -> str:
    """Returns the code of an operation's error of this reason."""
    return CODES.get(reason, UNKNOWN_CODE)


def checked_source(field: str, source: PluginSource) -> PluginSource:
    """Returns the source. Raises InvalidArgument for a source that no bucket can have."""
    if not _BUCKET.fullmatch(source.bucket) or ".." in source.bucket:
        legal = "the name of a bucket: 3 to 63 lower-case letters, digits, '.' and '-'"
        raise InvalidArgument.of(f"{field}.bucket", source.bucket[:100], legal)
    if not 0 < len(source.key.encode(errors="surrogatepass")) <= MAX_KEY_BYTES or "\0" in source.key:
        legal = f"the key of an object: 1 to {MAX_KEY_BYTES} bytes of UTF-8 without a NUL"
        raise InvalidArgument.of(f"{field}.key", source.key[:100], legal)
    if len(source.version) > MAX_OBJECT_VERSION or not source.version.isprintable() or "/" in source.version:
        legal = f"the version of an object: at most {MAX_OBJECT_VERSION} printable characters without '/', or empty"
        raise InvalidArgument.of(f"{field}.version", source.version[:100], legal)
    return source
