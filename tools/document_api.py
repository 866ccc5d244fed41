"""Prints the tables of docs/api.md, made from the protos, with their comments; `make docs` puts them into the site."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from keelman.gateway.service import FORWARDED

ROOT = Path(__file__).resolve().parent.parent
OURS = "keelman.api."
SERVED = {f"{area}.v1.{noun}" for area, nouns in FORWARDED.items() for noun in nouns} | {
    "connect.v1.connector", "node.v1.agent",
}  # fmt: skip
"""The services that users reach at the gateway, by area and noun."""
CALLS = {"node.v1.AgentService": ("StreamLogs",)}
"""Of services that a gateway does not serve whole."""
ROOTS = ("event.v1.Event",)
"""Messages that users get beside answers of calls."""
KINDS = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}
MESSAGE, ENUM = FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM
# Numbers of fields in descriptors, which paths of comments are made of.
MESSAGES, ENUMS, SERVICES, OF_MESSAGE, NESTED, NESTED_ENUMS, VALUES, METHODS = 4, 5, 6, 2, 3, 4, 2, 2


@dataclass(slots=True)
class Contract:
    """All that the protos have, by names without keelman.api., each with its comment."""

    services: dict[str, ServiceDescriptorProto] = field(default_factory=dict)
    messages: dict[str, DescriptorProto] = field(default_factory=dict)
    enums: dict[str, EnumDescriptorProto] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Contract:
        """Has protoc read the protos."""
        made = cls()
        for file in _files():
            made._add(file)
        return made

    def _add(self, file: FileDescriptorProto) -> None:
        comments = {tuple(one.path): _plain(one.leading_comments) for one in file.source_code_info.location}
        package = file.package.removeprefix(OURS)
        for number, service in enumerate(file.service):
            name = f"{package}.{service.name}"
            self.services[name] = service
            self.comments[name] = comments.get((SERVICES, number), "")
            for place, method in enumerate(service.method):
                self.comments[f"{name}/{method.name}"] = comments.get((SERVICES, number, METHODS, place), "")
        for number, enum in enumerate(file.enum_type):
            self._add_enum(f"{package}.{enum.name}", enum, (ENUMS, number), comments)
        for number, message in enumerate(file.message_type):
            self._add_message(f"{package}.{message.name}", message, (MESSAGES, number), comments)

    def _add_message(self, name: str, message: DescriptorProto, path: Any, comments: Mapping[Any, str]) -> None:
        self.messages[name] = message
        self.comments[name] = comments.get(path, "")
        for number, one in enumerate(message.field):
            self.comments[f"{name}/{one.name}"] = comments.get((*path, OF_MESSAGE, number), "")
        for number, nested in enumerate(message.nested_type):
            self._add_message(f"{name}.{nested.name}", nested, (*path, NESTED, number), comments)
        for number, enum in enumerate(message.enum_type):
            self._add_enum(f"{name}.{enum.name}", enum, (*path, NESTED_ENUMS, number), comments)

    def _add_enum(self, name: str, enum: EnumDescriptorProto, path: Any, comments: Mapping[Any, str]) -> None:
        self.enums[name] = enum
        self.comments[name] = comments.get(path, "")
        for number, value in enumerate(enum.value):
            self.comments[f"{name}/{value.name}"] = comments.get((*path, VALUES, number), "")

    def served(self) -> list[str]:
        """The services of the page, by name."""
        by_noun = {name: _noun_of(name) for name in self.services}
        return sorted(name for name, noun in by_noun.items() if noun in SERVED)

    def calls(self, service: str) -> list[MethodDescriptorProto]:
        """The methods of a service that a gateway serves."""
        every = self.services[service].method
        return [one for one in every if one.name in CALLS.get(service, (one.name,))]

    def reached(self) -> set[str]:
        """The messages and enums that those services take and give, and all within them."""
        found: set[str] = set()
        wanted = [*ROOTS]
        for name in self.served():
            wanted += [ours(kind) for m in self.calls(name) for kind in (m.input_type, m.output_type)]
        while wanted:
            name = wanted.pop()
            if name in found or (name not in self.messages and name not in self.enums):
                continue
            found.add(name)
            wanted += [ours(one.type_name) for one in getattr(self.messages.get(name), "field", ()) if one.type_name]
        return found


def tables() -> str:
    """Returns the tables of the page."""
    contract = Contract.read()
    reached = contract.reached()
    parts = ["\n| service | what it does |\n|---|---|\n"]
    parts += [_row(_link(name), contract.comments[name]) for name in contract.served()]
    for package in sorted({_package(name) for name in reached}):
        parts.append(f"\n## {package}\n")
        for name in contract.served():
            if _package(name) == package:
                parts += _service(contract, name)
        for name in sorted(reached):
            if _package(name) == package:
                is_enum = name in contract.enums
                parts += _enum(contract, name) if is_enum else _message(contract, name)
    return "".join(parts)


def _service(contract: Contract, name: str) -> Iterator[str]:
    yield f"\n### {name}\n\n{contract.comments[name]}\n\n| call | takes | gives | |\n|---|---|---|---|\n"
    for method in contract.calls(name):
        yield _row(f"`{method.name}`", *_ends(method), contract.comments[f"{name}/{method.name}"])


def _ends(method: MethodDescriptorProto) -> tuple[str, str]:
    takes, gives = _link(ours(method.input_type)), _link(ours(method.output_type))
    return (f"stream of {takes}" if method.client_streaming else takes), (
        f"stream of {gives}" if method.server_streaming else gives
    )


def _message(contract: Contract, name: str) -> Iterator[str]:
    message = contract.messages[name]
    if message.options.map_entry:
        return
    yield f"\n### {name}\n\n{contract.comments[name]}\n"
    if message.field:
        yield "\n| field | type | meaning |\n|---|---|---|\n"
    for one in message.field:
        said = contract.comments[f"{name}/{one.name}"]
        if one.HasField("oneof_index") and not one.proto3_optional:
            said = f"*One of `{message.oneof_decl[one.oneof_index].name}`.* {said}"
        yield _row(f"`{one.name}`", _type(contract, one), said)


def _type(contract: Contract, one: FieldDescriptorProto) -> str:
    entry = contract.messages.get(ours(one.type_name))
    if entry is not None and entry.options.map_entry:
        key, value = entry.field
        return f"map of {_kind(key)} to {_kind(value)}"
    if one.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {_kind(one)}"
    return f"optional {_kind(one)}" if one.proto3_optional else _kind(one)


def _kind(one: FieldDescriptorProto) -> str:
    return _link(ours(one.type_name)) if one.type in (MESSAGE, ENUM) else KINDS[one.type]


def _enum(contract: Contract, name: str) -> Iterator[str]:
    yield f"\n### {name}\n\n{contract.comments[name]}\n\n| value | meaning |\n|---|---|\n"
    for value in contract.enums[name].value:
        yield _row(f"`{value.name}`", contract.comments[f"{name}/{value.name}"])


def ours(type_name: str) -> str:
    """A type's name without keelman.api."""
    return type_name.removeprefix(".").removeprefix(OURS)


def _link(name: str) -> str:
    if name.startswith("google."):
        return name.removeprefix("google.protobuf.")
    return f"[{name.split('.v1.')[1]}](#{name.lower().replace('.', '')})"


def _package(name: str) -> str:
    return name.partition(".v1.")[0] + ".v1"


def _noun_of(service: str) -> str:
    """connect.v1.worker_cluster of connect.v1.WorkerClusterService."""
    package, name = _package(service), service.partition(".v1.")[2].removesuffix("Service")
    return f"{package}." + "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _plain(comment: str) -> str:
    return " ".join(comment.split())


def _files() -> list[FileDescriptorProto]:
    protos = sorted((ROOT / "protos").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "protos.binpb"
        words = [f"--proto_path={ROOT / 'protos'}", "--include_source_info", f"--descriptor_set_out={out}"]
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words, *map(str, protos)], check=True)
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


if __name__ == "__main__":
    print(tables(), end="")
