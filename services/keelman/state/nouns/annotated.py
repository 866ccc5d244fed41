"""What is said of resources of which nothing else changes: checked, changed by masks, and found by their origin."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.connect.config.secret_keys import kept_json
from keelman.model.cluster import Annotations
from keelman.model.errors import InvalidArgument
from keelman.model.shapes import check_labels
from keelman.state.nouns.serving import LabelledPage, has_labels, page_of
from keelman.state.snapshot import Snapshot

MAX_DESCRIPTION = 4096
CHANGED = ("description", "labels", "extra")


class OriginPage(LabelledPage, Protocol):
    """A request for a page of a list of what has some labels and is of an API."""

    @property
    def origin_api(self) -> str:
        """Of this API; empty for any."""

    @property
    def origin_scope(self) -> str:
        """Of this scope of it; empty for any."""


def origin_page(snapshot: Snapshot, noun: str, request: OriginPage) -> tuple[list[Any], str]:
    """One page of the resources of a noun that have annotations, and the token of the next."""
    labels = request.labels.items()

    def wanted(one: Any) -> bool:
        annotations: Annotations = one.annotations
        origin = annotations.origin
        api, scope = ("", "") if origin is None else (origin.api, origin.scope)
        return (
            has_labels(annotations.labels, labels)
            and request.origin_api in ("", api)
            and request.origin_scope in ("", scope)
        )

    return page_of(snapshot.names(noun), snapshot.resources(noun), request, wanted)


def check_mask(mask: FieldMask) -> None:
    """Raises InvalidArgument for a path of what cannot be changed."""
    if wrong := next((path for path in mask.paths if path.partition(".")[0] not in CHANGED), ""):
        raise InvalidArgument.of("update_mask", wrong, f"one of {', '.join(CHANGED)}: nothing else changes")


def checked_annotations(prefix: str, given: Annotations, present: Annotations | None) -> Annotations:
    """What is said of a resource, with what came back hidden as it is stored. Raises InvalidArgument."""
    check_description(given.description, prefix)
    check_labels(f"{prefix}labels", given.labels)
    if given.extra is None:
        return given
    kept = kept_json(f"{prefix}extra", given.extra, None if present is None else present.extra)
    return dataclasses.replace(given, extra=kept)


def check_description(text: str, prefix: str = "") -> None:
    """Raises InvalidArgument for a description that is too long."""
    if len(text) > MAX_DESCRIPTION:
        raise InvalidArgument.of(f"{prefix}description", f"{text[:20]}...", f"at most {MAX_DESCRIPTION} characters")
