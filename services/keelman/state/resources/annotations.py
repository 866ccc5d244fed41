"""Checks the annotations of resources, and finds resources by their origin."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from google.protobuf.message import Message

from keelman.api.connect.v1 import origin_pb2
from keelman.model.annotations import Annotations
from keelman.model.connectors.worker_configuration import WorkerConfiguration
from keelman.model.errors import InvalidArgument
from keelman.model.plugins.plugin_import import PluginImport
from keelman.model.rules.field_checks import check_labels
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.state.resources.checks import check_numbers, check_quota
from keelman.state.resources.hidden import kept_extra
from keelman.state.resources.origins import check_origin
from keelman.state.resources.serving import has_labels, page_of
from keelman.state.resources.snapshot import Snapshot

MAX_DESCRIPTION = 4096
W = TypeVar("W", WorkerConfiguration, PluginImport)
CHANGED = ("description", "labels", "extra")
"""The fields that change in resources of which only the annotations change."""


def annotated(annotations: Annotations) -> dict[str, Any]:
    """Returns the annotations of a resource as fields of a message."""
    origin = None if annotations.origin is None else message_of(origin_pb2.Origin, annotations.origin)
    said = {"description": annotations.description, "labels": annotations.labels, "origin": origin}
    return said | {"extra": annotations.extra or None}


def annotations_of(message: Message) -> Annotations:
    """Returns the annotations of a message: description, labels, origin and extra."""
    return value_of(Annotations, message)


def origin_page(snapshot: Snapshot, noun: str, request: Any) -> tuple[list[Any], str]:
    """Returns one page of the resources of a noun that have annotations, and the token of the next."""
    labels = request.labels.items()

    def wanted(resource: Any) -> bool:
        annotations: Annotations = resource.annotations
        origin = annotations.origin
        api, scope = ("", "") if origin is None else (origin.api, origin.scope)
        return (
            has_labels(annotations.labels, labels)
            and request.origin_api in ("", api)
            and request.origin_scope in ("", scope)
        )

    return page_of(snapshot.names(noun), snapshot.resources(noun), request, wanted)


def new_annotations(noun: str, request: Any, snapshot: Snapshot) -> Annotations:
    """Returns the annotations in a create request of a noun whose number an API may limit.

    Raises InvalidArgument, FailedPrecondition for an origin of another resource, Exhausted if its scope would have more
    of them than the request allows.
    """
    new = annotations_of(request)
    check_origin(noun, request.name, new.origin, snapshot, field="origin")
    check_numbers("extra", request.extra)
    present = ((resource.annotations.origin, 1) for resource in snapshot.resources(noun).values())
    check_quota(f"{noun.replace('_', ' ')}s", new.origin, present, 1, request.max_of_scope)
    return checked_annotations("", new, None)


def reworded(resource: W, shown: Message, noun: str, request: Any) -> W:
    """Returns the resource with the annotations of an update request; nothing else of it changes. Raises
    InvalidArgument for other fields and for illegal values."""
    mask, sent = request.update_mask, getattr(request, noun)
    if wrong := next((path for path in mask.paths if path.partition(".")[0] not in CHANGED), ""):
        raise InvalidArgument.of("update_mask", wrong, f"one of {', '.join(CHANGED)}: nothing else changes")
    check_numbers(f"{noun}.extra", sent.extra)
    new = dataclasses.replace(annotations_of(masked(shown, sent, mask)), origin=resource.annotations.origin)
    return dataclasses.replace(resource, annotations=checked_annotations(f"{noun}.", new, resource.annotations))


def checked_annotations(prefix: str, new: Annotations, present: Annotations | None) -> Annotations:
    """Returns the annotations, checked, with stored values in place of hidden ones. Raises InvalidArgument."""
    check_description(new.description, prefix)
    check_labels(f"{prefix}labels", new.labels)
    if new.extra is None:
        return new
    extra = kept_extra(f"{prefix}extra", new.extra, None if present is None else present.extra)
    return dataclasses.replace(new, extra=extra)


def check_annotations(noun: str, name: str, new: Annotations, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for a description or labels that are not legal, FailedPrecondition for an origin of
    another resource of this noun."""
    check_description(new.description, "spec.")
    check_labels("spec.labels", new.labels)
    check_origin(noun, name, new.origin, snapshot)


def check_description(text: str, prefix: str = "") -> None:
    """Raises InvalidArgument for a description that is too long."""
    if len(text) > MAX_DESCRIPTION:
        raise InvalidArgument.of(f"{prefix}description", f"{text[:20]}...", f"at most {MAX_DESCRIPTION} characters")
