"""Writes Java class files and jars of them, without a compiler: a class that extends another and has a constructor."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

SOURCE = "org/apache/kafka/connect/source/SourceConnector"
SINK = "org/apache/kafka/connect/sink/SinkConnector"
TRANSFORMATION = "org/apache/kafka/connect/transforms/Transformation"
PREDICATE = "org/apache/kafka/connect/transforms/predicates/Predicate"
CONVERTER = "org/apache/kafka/connect/storage/Converter"
HEADER_CONVERTER = "org/apache/kafka/connect/storage/HeaderConverter"
PUBLIC, ABSTRACT = 0x0021, 0x0421


def class_bytes(
    name: str,
    parent: str = "java/lang/Object",
    interfaces: Sequence[str] = (),
    *,
    flags: int = PUBLIC,
    java: int = 17,
    constructor: bool = True,
    uses: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> bytes:
    """A class file; names are like com/acme/Weather. Among its constants are classes that it `uses`, and `texts`."""
    constants: list[bytes] = []

    def add(data: bytes) -> int:
        if data not in constants:
            constants.append(data)
        return constants.index(data) + 1

    def text(value: str) -> int:
        return add(struct.pack(">BH", 1, len(value.encode())) + value.encode())

    def class_of(value: str) -> int:
        return add(struct.pack(">BH", 7, text(value)))

    body = struct.pack(">HHHH", flags, class_of(name), class_of(parent), len(interfaces))
    body += b"".join(struct.pack(">H", class_of(interface)) for interface in interfaces)
    body += struct.pack(">HH", 0, int(constructor))
    if constructor:
        body += struct.pack(">HHHH", 1, text("<init>"), text("()V"), 1)
        body += struct.pack(">HI", text("Code"), 12) + struct.pack(">HHI", 0, 1, 0) + bytes(4)
    body += struct.pack(">H", 0)
    for add_constant, some in ((class_of, uses), (text, texts)):
        for item in some:
            add_constant(item)
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 44 + java, len(constants) + 1)
    return head + b"".join(constants) + body


def jar_bytes(classes: Sequence[bytes] = (), files: Mapping[str, str | bytes] | None = None) -> bytes:
    """A jar with these classes, at the places of their names, and these files by path: the same bytes each time."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        named: dict[str, str | bytes] = {f"{_name(item)}.class": item for item in classes}
        for path, content in {**named, **(files or {})}.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _name(data: bytes) -> str:
    """The class's name, which is the first text of `class_bytes`."""
    return data[13 : 13 + struct.unpack_from(">H", data, 11)[0]].decode()
