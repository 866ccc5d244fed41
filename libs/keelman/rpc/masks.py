"""Applies a field mask: the fields of a resource that an update names get the values that it gives."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from keelman.model.errors import InvalidArgument

M = TypeVar("M", bound=Message)


def masked(present: M, changed: M, mask: FieldMask) -> M:
    """Returns `present` with the fields that `mask` names taken from `changed`, maps and lists whole; an empty mask
    names all.

    Raises InvalidArgument for a path that is not a field.
    """
    if not mask.paths:
        return changed
    descriptor: Any = present.DESCRIPTOR  # two classes of descriptors, one interface
    for path in mask.paths:
        if not FieldMask(paths=[path]).IsValidForDescriptor(descriptor):
            raise InvalidArgument.of("update_mask", path, "fields of the spec: " + ", ".join(descriptor.fields_by_name))
    result = type(present)()
    result.CopyFrom(present)
    mask.MergeMessage(changed, result, replace_message_field=True, replace_repeated_field=True)
    return result
