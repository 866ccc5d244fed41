"""Checks that several nouns share. Each raises an error that names the field, the value and the legal values."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Any, TypeVar, cast

from google.protobuf.struct_pb2 import Struct, Value

from keelman.model.annotations import Origin
from keelman.model.errors import AlreadyExists, Conflict, Exhausted, InvalidArgument
from keelman.model.rules.names import checked_name
from keelman.state.resources.snapshot import Resource, Snapshot
from keelman.state.resources.transaction import Transaction

R = TypeVar("R", bound=Resource)


def check_etag(name: str, etag: str, present: str) -> None:
    """Raises Conflict when the caller's etag is that of an older version."""
    if etag and etag != present:
        raise Conflict(
            f"etag: {etag!r} is not the present etag of {name!r}, which is {present!r}: read it again, then decide",
            reason="ETAG_MISMATCH",
            metadata={"name": name, "etag": present},
        )


def present(tx: Transaction, kind: type[R], name: str, etag: str) -> R:
    """Returns the resource of a kind and a name. Raises NotFound, and Conflict for an etag other than the present
    one."""
    resource: Any = tx.snapshot.named(kind.NOUN, name)
    check_etag(name, etag, resource.etag)
    return cast(R, resource)


def check_free(noun: str, name: str, container: Container[str]) -> None:
    """Raises InvalidArgument for a name that is not legal, AlreadyExists if it is taken."""
    checked_name("name", name)
    if name in container:
        raise AlreadyExists(f"name: a {noun} named {name!r} exists already: choose another name")


def check_same(field: str, old: object, new: object) -> None:
    """Raises InvalidArgument for a field that an update would change and that cannot be changed."""
    if old != new:
        raise InvalidArgument.of(field, new, f"{old!r}, as when the cluster was created: it cannot be changed")


def check_nodes(field: str, nodes: tuple[str, ...], snapshot: Snapshot) -> None:
    """Raises InvalidArgument for a node that is not known or is named twice."""
    for node in nodes:
        if node not in snapshot.nodes:
            raise InvalidArgument.of(field, node, known_nodes(snapshot))
        if nodes.count(node) > 1:
            raise InvalidArgument.of(field, node, "each node once")


def check_quota(
    what: str, origin: Origin | None, present: Iterable[tuple[Origin | None, int]], more: int, most: int
) -> None:
    """Raises Exhausted (QUOTA) if the API and scope of an origin would have more than `most` of something; 0: any
    number. `present`: each resource's origin, and its amount."""
    if not most or origin is None or more <= 0:
        return
    place = (origin.api, origin.scope)
    used = sum(count for holder, count in present if holder is not None and (holder.api, holder.scope) == place)
    if used + more > most:
        raise Exhausted(
            f"{what}: {used} and {more} more are more than the {most} that scope {origin.scope!r} of {origin.api!r} "
            "may have",
            reason="QUOTA",
            metadata={"used": str(used), "more": str(more), "most": str(most)},
        )


def origin_facts(origin: Origin | None) -> dict[str, str]:
    """Returns an error's metadata on the origin of a conflicting resource; empty if it has none."""
    if origin is None:
        return {}
    return {"origin_api": origin.api, "origin_scope": origin.scope, "origin_key": origin.key}


def known_nodes(snapshot: Snapshot) -> str:
    """Returns a text of the known nodes."""
    names = ", ".join(sorted(snapshot.nodes))
    return f"registered nodes are {names}" if names else "no node has registered yet: start an agent first"


def check_numbers(field: str, content: Struct) -> None:
    """Raises InvalidArgument for a number that JSON does not have."""
    for key, value in content.fields.items():
        _check_number(f"{field}.{key}", value)


def _check_number(field: str, value: Value) -> None:
    match value.WhichOneof("kind"):
        case "number_value":
            if not math.isfinite(value.number_value):
                raise InvalidArgument.of(field, value.number_value, "a finite number")
        case "struct_value":
            check_numbers(field, value.struct_value)
        case "list_value":
            for number, item in enumerate(value.list_value.values):
                _check_number(f"{field}[{number}]", item)
