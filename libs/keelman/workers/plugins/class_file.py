"""Reads a class from a Java class file: names, flags, version, whether it can be created without arguments.

The format: https://docs.oracle.com/javase/specs/jvms/se17/html/jvms-4.html. Nothing is loaded, and a broken file costs
no more than an intact one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = 0xCAFEBABE
FIRST_JAVA = 44
"""A class file's major version less this is the Java release that reads it: 61 is Java 17."""
PUBLIC, INTERFACE, ABSTRACT = 0x0001, 0x0200, 0x0400

_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
_SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
_HEAD = struct.Struct(">IHHH")
_TWO = struct.Struct(">H")
_THREE = struct.Struct(">HHH")
_MEMBER = struct.Struct(">HHHH")
_ATTRIBUTE = struct.Struct(">HI")


class InvalidClassFile(ValueError):
    """The bytes are not a Java class file."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class. Names are those of the file: com/acme/Weather$Key. `java` is the release that it needs, e.g. 17."""

    name: str
    parents: tuple[str, ...]
    """Its super class first, then its interfaces."""
    flags: int
    java: int
    has_constructor: bool
    """Whether it has a public constructor without arguments."""

    @property
    def can_be_made(self) -> bool:
        """Whether Connect can create an instance: public, neither abstract nor an interface, with such a
        constructor."""
        return self.has_constructor and self.flags & (PUBLIC | INTERFACE | ABSTRACT) == PUBLIC


def read_class(data: bytes) -> ClassFile:
    """Returns the class of a file. Raises InvalidClassFile."""
    try:
        return _read(data)
    except (struct.error, IndexError) as error:
        raise InvalidClassFile("not a class file: it ends early") from error
    except (KeyError, UnicodeDecodeError) as error:
        raise InvalidClassFile("not a class file: an invalid constant") from error


def named_classes(data: bytes, texts_of: bytes) -> frozenset[str]:
    """Returns the classes that the constants of a class file name, like com/acme/Weather: those that its code uses, and
    texts with this prefix (in dots), for classes that are looked up by name. Raises InvalidClassFile."""
    try:
        return _named_classes(data, texts_of)
    except (struct.error, IndexError, KeyError) as error:
        raise InvalidClassFile("not a class file: an invalid constant") from error


def _named_classes(data: bytes, texts_of: bytes) -> frozenset[str]:
    places, _ = _constants(data, _HEAD.unpack_from(data)[3])
    names = set[str]()
    for at in filter(None, places):
        if data[at] == _CLASS:
            name = _text(data, places, _TWO.unpack_from(data, at + 1)[0]).decode(errors="replace")
            names.add(name.lstrip("[")[1:-1] if name.startswith("[") else name)
        elif data[at] == _UTF8 and data.startswith(texts_of, at + 3):
            text = data[at + 3 : at + 3 + (data[at + 1] << 8) + data[at + 2]]
            names.add(text.decode(errors="replace").replace(".", "/"))
    return frozenset(names)


def _read(data: bytes) -> ClassFile:
    magic, _, major, count = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise InvalidClassFile("not a class file: it does not begin with CAFEBABE")
    places, at = _constants(data, count)
    flags, this, parent = _THREE.unpack_from(data, at)
    (interfaces,) = _TWO.unpack_from(data, at + 6)
    numbers = struct.unpack_from(f">{interfaces}H", data, at + 8)
    names = tuple(_class_name(data, places, n) for n in (parent, *numbers) if n)  # Object has no parent
    can_be_made = flags & (PUBLIC | INTERFACE | ABSTRACT) == PUBLIC
    constructor = can_be_made and _has_constructor(data, places, at + 8 + 2 * interfaces)
    return ClassFile(_class_name(data, places, this), names, flags, major - FIRST_JAVA, constructor)


def _constants(data: bytes, count: int) -> tuple[list[int], int]:
    """Returns the position of each constant, and the position after the last one."""
    places, number, at, sizes = [0] * count, 1, _HEAD.size, _SIZES
    while number < count:
        places[number] = at
        tag = data[at]
        if tag == _UTF8:
            at += 3 + (data[at + 1] << 8) + data[at + 2]
        else:
            at += sizes[tag]
            if tag in (_LONG, _DOUBLE):
                number += 1
        number += 1
    return places, at


def _class_name(data: bytes, places: list[int], number: int) -> str:
    at = places[number]
    if data[at] != _CLASS:
        raise InvalidClassFile(f"not a class file: constant {number} is no class")
    return _text(data, places, _TWO.unpack_from(data, at + 1)[0]).decode()


def _text(data: bytes, places: list[int], number: int) -> bytes:
    at = places[number]
    if data[at] != _UTF8:
        raise InvalidClassFile(f"not a class file: constant {number} is no text")
    return data[at + 3 : at + 3 + (data[at + 1] << 8) + data[at + 2]]


def _has_constructor(data: bytes, places: list[int], at: int) -> bool:
    for is_method in (False, True):
        (count,) = _TWO.unpack_from(data, at)
        at += 2
        for _ in range(count):
            flags, name, kind, attributes = _MEMBER.unpack_from(data, at)
            is_public = is_method and flags & PUBLIC
            if is_public and (_text(data, places, name), _text(data, places, kind)) == (b"<init>", b"()V"):
                return True
            at += _MEMBER.size
            for _ in range(attributes):
                at += _ATTRIBUTE.size + _ATTRIBUTE.unpack_from(data, at)[1]
    return False
