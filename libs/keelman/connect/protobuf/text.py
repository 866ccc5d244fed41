"""Protobuf's schema language, as much of it as Connect's schemas need; written as the registry's clients write it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class FieldText:
    """`label` is empty, `repeated` or `optional`; `params` become those of `(confluent.field_meta)`."""

    name: str
    type: str
    number: int
    label: str = ""
    params: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Its text."""
        begin = f"{self.label} {self.type}".lstrip() + f" {self.name} = {self.number}"
        if not self.params:
            return [f"{begin};"]
        pairs = [["  {", f'    key: "{key}",', f'    value: "{text}"', "  }"] for key, text in self.params.items()]
        for pair in pairs[:-1]:
            pair[-1] += ","
        inner = ["params: [", *(line for pair in pairs for line in pair), "]"]
        return [f"{begin} [(confluent.field_meta) = {{", *_indented(inner), "}];"]


@dataclass(slots=True)
class EnumText:
    """An enum: the numbers of its symbols, in their order."""

    name: str
    symbols: dict[str, int]

    def lines(self) -> list[str]:
        """Its text, zero first as proto3 wants it."""
        ordered = sorted(self.symbols.items(), key=lambda symbol: symbol[1] != 0)
        alias = ["option allow_alias = true;"] if len(set(self.symbols.values())) < len(self.symbols) else []
        symbols = [f"{name} = {number};" for name, number in ordered]
        return [f"enum {self.name} {{", *_indented([*alias, *symbols]), "}"]


@dataclass(slots=True)
class MessageText:
    """A message: its fields, its oneofs by their names, the types that are defined within."""

    name: str
    fields: list[FieldText] = field(default_factory=list)
    oneofs: dict[str, list[FieldText]] = field(default_factory=dict)
    types: list[MessageText | EnumText] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Its text: a blank line stands before oneofs and before types."""
        oneofs = [
            [f"oneof {name} {{", *_indented(_all(one.lines() for one in fields)), "}"]
            for name, fields in self.oneofs.items()
        ]
        parts = [_all(one.lines() for one in self.fields), _all(oneofs), _all(one.lines() for one in self.types)]
        inner: list[str] = []
        for place, part in enumerate(parts):
            if part and place and inner:
                inner.append("")
            inner += _indented(part)
        if not inner:
            return [f"message {self.name} {{}}"]
        return [f"message {self.name} {{", *inner, "}"]


def file_text(package: str, imports: Iterable[str], messages: Sequence[MessageText]) -> str:
    """A file of proto3."""
    lines = ['syntax = "proto3";', *([f"package {package};"] if package else []), ""]
    if imported := sorted(set(imports)):
        lines += [*(f'import "{name}";' for name in imported), ""]
    return "\n".join([*lines, *_all(one.lines() for one in messages), ""])


def _all(parts: Iterable[Sequence[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _indented(lines: Iterable[str]) -> list[str]:
    """Two spaces before each, blank ones too."""
    return [f"  {line}" for line in lines]
