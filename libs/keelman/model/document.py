"""A document: JSON that an API built on ours stores, and that does not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name

MAX_KEY = 255


@dataclass(frozen=True, slots=True)
class Document:
    """A document under its kind, scope and key. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "document"

    kind: str
    scope: str
    key: str
    uid: str
    create_time: datetime
    update_time: datetime
    content: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    etag: str = ""

    @property
    def name(self) -> str:
        """Its key among all: kind/scope/key."""
        return document_name(self.kind, self.scope, self.key)


def document_name(kind: str, scope: str, key: str) -> str:
    """Returns the name of a document in events and tables: kind/scope/key, each percent-encoded if it has a '/' or
    '%'."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (kind, scope, key))


def parts_of_name(name: str) -> tuple[str, str, str]:
    """Returns kind, scope and key of a document's name."""
    kind, scope, key = (part.replace("%2F", "/").replace("%25", "%") for part in name.split("/"))
    return kind, scope, key


def document_parts(name: str) -> tuple[str, str, str]:
    """Returns kind, scope and key of a name that a user types. Raises InvalidArgument for an illegal name."""
    if name.count("/") != 2:
        legal = "KIND/SCOPE/KEY, as `keelman get documents` has it: ohara.zookeeper/default/zk"
        raise InvalidArgument.of("document", name, legal)
    return parts_of_name(name)


def check_document_key(prefix: str, kind: str, scope: str, key: str) -> None:
    """Raises InvalidArgument for a kind, scope or key that no document has; `prefix` is put before the fields."""
    checked_name(f"{prefix}kind", kind)
    check_scope(f"{prefix}scope", scope)
    if not key or not _is_legal(key):
        raise InvalidArgument.of(f"{prefix}key", key[:MAX_KEY], f"1 to {MAX_KEY} characters, none of them a control")


def check_scope(field: str, scope: str) -> None:
    """Raises InvalidArgument for a scope that no document has."""
    if not _is_legal(scope):
        legal = f"empty, or at most {MAX_KEY} characters, none of them a control"
        raise InvalidArgument.of(field, scope[:MAX_KEY], legal)


def _is_legal(text: str) -> bool:
    return len(text) <= MAX_KEY and not any(c < " " or c == "\x7f" for c in text)
