"""Fills a message of the wire contract from a manifest, field by field, so that each error names its field."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from keelman.cli.manifests.manifest import unknown
from keelman.cli.sizes import size_of
from keelman.model.errors import InvalidArgument

_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: "a whole number",
    FieldDescriptor.CPPTYPE_INT64: "a whole number",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number of 0 or more",
    FieldDescriptor.CPPTYPE_UINT64: "a whole number of 0 or more",
}
_OURS = "keelman."


def fill(message: Message, tree: Any, path: str, *, without: Collection[str] = ()) -> None:
    """Sets the given fields of a message; fields in `without` are illegal, and null leaves a field unchanged. Raises
    InvalidArgument with the field, the value and the legal ones."""
    _check_mapping(tree, path)
    by_name: Any = message.DESCRIPTOR.fields_by_name  # two classes of descriptors, one interface
    fields: dict[str, FieldDescriptor] = {name: field for name, field in by_name.items() if name not in without}
    chosen: dict[str, str] = {}
    for key, value in tree.items():
        field = fields.get(key)
        if field is None:
            raise unknown(path, key, fields)
        if value is None:
            continue
        if (one_of := field.containing_oneof) is not None:
            if one_of.name in chosen and not one_of.name.startswith("_"):
                raise InvalidArgument(f"{path}.{key}: not together with {chosen[one_of.name]}: choose one of them")
            chosen[one_of.name] = key
        _set(message, field, value, f"{path}.{key}")


def texts(tree: Any, path: str) -> dict[str, str]:
    """Returns a map of texts, with numbers and booleans as they were written. Raises InvalidArgument."""
    _check_mapping(tree, path)
    return {str(key): text_of(value, f"{path}.{key}") for key, value in tree.items() if value is not None}


def text_of(value: Any, path: str) -> str:
    """Returns a text, a number or a boolean as it was written. Raises InvalidArgument."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(getattr(value, "text", value))
    raise InvalidArgument.of(path, value, "a text")


def _check_mapping(tree: Any, path: str) -> None:
    if not isinstance(tree, Mapping):
        raise InvalidArgument.of(path, tree, "fields and their values (a mapping)")


def _set(message: Any, field: FieldDescriptor, value: Any, path: str) -> None:
    entry = field.message_type if field.message_type and field.message_type.GetOptions().map_entry else None
    if entry is not None:
        target = getattr(message, field.name)
        _check_mapping(value, path)
        for key, item in value.items():
            if item is not None:
                target[str(key)] = _scalar(entry.fields_by_name["value"], item, f"{path}.{key}")
        return
    if field.is_repeated:
        if not isinstance(value, list):
            raise InvalidArgument.of(path, value, "a list")
        for number, item in enumerate(value):
            _append(getattr(message, field.name), field, item, f"{path}[{number}]")
    elif field.message_type is None:
        _assign(message, field, value, path)
    else:
        _part(getattr(message, field.name), value, path)


def _append(target: Any, field: FieldDescriptor, value: Any, path: str) -> None:
    if field.message_type is None:
        target.append(_scalar(field, value, path))
    else:
        _part(target.add(), value, path)


def _part(target: Message, value: Any, path: str) -> None:
    """Fills a nested message; protobuf's own messages are written as in its JSON."""
    target.SetInParent()
    if target.DESCRIPTOR.full_name.startswith(_OURS):
        fill(target, value, path)
        return
    try:
        ParseDict(value, target)
    except (ParseError, TypeError, AttributeError, ValueError) as error:
        raise InvalidArgument.of(path, value, f"a {target.DESCRIPTOR.name} ({error})") from None


def _assign(message: Any, field: FieldDescriptor, value: Any, path: str) -> None:
    scalar = _scalar(field, value, path)
    try:
        setattr(message, field.name, scalar)
    except (ValueError, TypeError):
        raise InvalidArgument.of(path, value, _WHOLE.get(field.cpp_type, "another value") + " of 32 bits") from None


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:
    kind = field.cpp_type
    if field.type == FieldDescriptor.TYPE_BYTES:
        return text_of(value, path).encode()
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return text_of(value, path)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _enum(field, value, path)
    if kind in _WHOLE:
        return _whole(field, value, path)
    return _truth(value, path) if kind == FieldDescriptor.CPPTYPE_BOOL else _real(value, path)


def _truth(value: Any, path: str) -> bool:
    if value not in (True, False, "true", "false") or (isinstance(value, int | float) and not isinstance(value, bool)):
        raise InvalidArgument.of(path, value, "true or false")
    return value in (True, "true")


def _real(value: Any, path: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (ValueError, TypeError):
        raise InvalidArgument.of(path, value, "a number") from None


def _whole(field: FieldDescriptor, value: Any, path: str) -> int:
    """Returns a whole number; large numbers may be texts, as in JSON, and sizes may have a unit."""
    legal = _WHOLE[field.cpp_type]
    if isinstance(value, str) and field.name.endswith("_bytes"):
        return size_of(path, value)
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except (ValueError, TypeError):
        raise InvalidArgument.of(path, value, legal) from None


def _enum(field: FieldDescriptor, value: Any, path: str) -> int:
    """Returns the number of an enum's value, by its full name or the name without the enum's prefix: KAFKA_CONNECT or
    kafka-connect."""
    assert field.enum_type is not None
    names = {value.name: value.number for value in field.enum_type.values}
    zero = next(name for name, number in names.items() if not number)
    prefix = zero.removesuffix("UNSPECIFIED")
    plain = str(value).upper().replace("-", "_")
    for name in (plain, prefix + plain):
        if name in names:
            return names[name]
    raise InvalidArgument.of(path, value, "one of " + ", ".join(n.removeprefix(prefix) for n in names if n != zero))
