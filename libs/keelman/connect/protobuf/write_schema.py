"""Translates a Connect schema into a Protobuf schema, in Confluent's mapping.

https://docs.confluent.io/platform/current/schema-registry/connect.html#protobuf
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from keelman.connect.converters.logical import DECIMAL
from keelman.connect.errors import DataError
from keelman.connect.protobuf import names
from keelman.connect.recurring_schema import Recurring
from keelman.connect.registry.keys import ConverterOptions
from keelman.connect.registry.sum_types import ANY_UNION
from keelman.connect.schema import Field, Schema, type_name

_TYPES = {"int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64", "boolean": "bool"}
_RESERVED = range(19_000, 20_000)


@dataclass(frozen=True, slots=True)
class ProtobufOptions(ConverterOptions):
    """The keys of a configuration for the mapping of schemas. Fields have the keys' names, with underscores."""

    generalized_sum_type_support: bool = False
    enhanced_protobuf_schema_support: bool = False
    scrub_invalid_names: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    generate_struct_for_nulls: bool = False
    generate_index_for_unions: bool = True
    flatten_unions: bool = False
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    ignore_default_for_nullables: bool = False


def write_schema(schema: Schema, options: ProtobufOptions) -> tuple[str, str]:
    """Returns the text of a schema and the full name of its message. Raises DataError for types beyond Protobuf."""
    if schema.type in ("array", "map"):
        raise DataError(
            f"A record that is a {type_name(schema.type)} cannot be written as Protobuf: put it into a struct"
        )
    if schema.name in names.LOGICAL:
        raise DataError(f"A record that is a {schema.name} cannot be written as Protobuf: put it into a struct")
    if schema.type != "struct":
        return _wrappers(), f"{names.WRAPPERS_PACKAGE}.{names.WRAPPERS[_TYPES.get(schema.type, schema.type)]}"
    try:
        return _Writer(options).whole(schema)
    except RecursionError:
        raise DataError("The schema is nested too deeply for Protobuf") from None


def _wrappers() -> str:
    messages = [MessageText(name, [FieldText(names.VALUE, kind, 1)]) for kind, name in names.WRAPPERS.items()]
    return file_text(names.WRAPPERS_PACKAGE, (), messages)


class _Writer:
    """Writes one schema. Structs and maps without names are numbered in the order in which they are met."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._numbers = count(1)
        self._imports: set[str] = set()
        self._dot = ""
        self._known: dict[int, dict[str, Schema]] = {}
        self._open: list[tuple[tuple[Field, ...], str]] = []

    def whole(self, schema: Schema) -> tuple[str, str]:
        package, name = names.split_name(self._named(schema.name))
        if self._options.scrub_invalid_names:
            package = ".".join(map(names.scrubbed, package.split(".")))
        # Names are resolved from within: `google` must not be found in our own package.
        self._dot = "." if {"google", "confluent"} & {*package.split(".")[1:], name} else ""
        message = self._message(self._scrub(name), schema)
        text = file_text(package, self._imports, [message])
        return text, f"{package}.{message.name}" if package else message.name

    def _named(self, name: str | None) -> str:
        return name or f"{names.DEFAULT_NAME}{next(self._numbers)}"

    def _scrub(self, name: str) -> str:
        return names.scrubbed(name) if self._options.scrub_invalid_names else name

    def _simple(self, name: str | None) -> str:
        return self._scrub(names.split_name(self._named(name))[1])

    def _message(self, name: str, schema: Schema) -> MessageText:
        message = MessageText(name)
        self._known[id(message)] = {}
        self._open.append((schema.fields, name))
        numbers = _numbers(schema)
        for member in schema.fields:
            if names.is_union(member.schema):
                oneof = self._oneof_name(member.schema)
                message.oneofs[oneof] = [
                    self._field(message, schema, self._scrub(field.name), field.schema, next(numbers), plain=True)
                    for field in member.schema.fields
                ]
            else:
                number = next(numbers)
                message.fields.append(self._field(message, schema, self._scrub(member.name), member.schema, number))
        self._open.pop()
        return message

    def _oneof_name(self, schema: Schema) -> str:
        general = dict(schema.parameters).get(ANY_UNION)
        if general and self._options.generalized_sum_type_support:
            return self._scrub(general)
        return self._simple((schema.name or "").removeprefix(names.UNION).lstrip(".") or general)

    def _field(  # noqa: PLR0917
        self, message: MessageText, parent: Schema, name: str, schema: Schema, number: int, plain: bool = False
    ) -> FieldText:
        label = ""
        if schema.type == "array":
            label = "repeated"
            assert schema.value is not None
            schema = schema.value
            if schema.type in ("array", "map"):
                held = type_name(schema.type)
                raise DataError(f"Field {name} is an ARRAY of {held}: Protobuf repeats neither arrays nor maps")
        elif schema.type == "map":
            label = "repeated"
        elif self._options.optional_for_nullables and schema.optional and not plain:
            label = "optional"
        field = FieldText(name, "", number, label)
        field.type = self._type(message, parent, field, schema)
        if field.params:
            self._imports.add(names.META_FILE)
        return field

    def _type(self, message: MessageText, parent: Schema, field: FieldText, schema: Schema) -> str:
        parameters = dict(schema.parameters)
        if schema.name in names.LOGICAL:
            if schema.name == DECIMAL:
                pairs = {"precision": parameters.get(names.PRECISION), "scale": parameters.get("scale")}
                field.params = {key: text for key, text in pairs.items() if text is not None}
            kind, file = names.LOGICAL[str(schema.name)]
            self._imports.add(file)
            return self._dot + kind
        if schema.type == "map":
            return self._map(message, names.entry_name(self._simple(schema.name)), schema)
        if schema.type == "struct":
            return self._struct(message, parent, schema)
        enum = self._enum(message, schema)
        if enum is not None:
            return enum
        if schema.type in ("int8", "int16"):
            field.params["connect.type"] = schema.type
        kind = _TYPES.get(schema.type, schema.type)
        if schema.type in ("int32", "int64"):
            kind = parameters.get(names.TYPE, kind)
        if self._options.wrapper_for_nullables and schema.optional:
            self._imports.add(names.WRAPPERS_FILE)
            wide = "int32" if schema.type == "int32" else {"fixed32": "uint32", "fixed64": "uint64"}.get(kind, kind)
            return f"{self._dot}{names.WRAPPERS_PACKAGE}.{names.WRAPPERS.get(wide) or names.WRAPPERS[schema.type]}"
        return kind

    def _struct(self, message: MessageText, parent: Schema, schema: Schema) -> str:
        if isinstance(schema, Recurring):
            return next(above for fields, above in self._open if fields is schema.fields)
        name = self._simple(schema.name)
        taken = {self._scrub(field.name) for field in parent.fields}
        while name in taken:  # fields and types share one scope of names
            name += "Message"
        by_name = self._known[id(message)]
        if name not in by_name:
            by_name[name] = schema
            message.types.append(self._message(name, schema))
        elif by_name[name].fields != schema.fields:
            raise DataError(f"Two structs named {name} in {message.name} have different fields")
        return name

    def _map(self, message: MessageText, name: str, schema: Schema) -> str:
        assert schema.key is not None
        assert schema.value is not None
        entry = MessageText(name)
        self._known[id(entry)] = {}
        for number, (part, inner) in enumerate(((names.KEY, schema.key), (names.VALUE, schema.value)), 1):
            entry.fields.append(self._field(entry, schema, part, inner, number))
        by_name = self._known[id(message)]
        if by_name.setdefault(name, schema) is schema:
            message.types.append(entry)
        elif by_name[name].key != schema.key or by_name[name].value != schema.value:
            raise DataError(f"Two maps named {schema.name} in {message.name} are of different types")
        return name

    def _enum(self, message: MessageText, schema: Schema) -> str | None:
        try:
            enum = names.enum_of(schema, general=self._options.generalized_sum_type_support)
        except ValueError as error:
            raise DataError(f"The enum {schema.name} has an illegal number: {error}") from None
        if enum is None:
            return None
        name = self._simple(enum[0] or schema.name)
        if not any(nested.name == name for nested in message.types):
            message.types.append(EnumText(name, {self._scrub(symbol): number for symbol, number in enum[1].items()}))
        return name


def _numbers(schema: Schema) -> Iterator[int]:
    """Returns the numbers of all fields, with oneofs expanded in place: the given ones, else the next free ones."""
    leaves = [
        leaf.schema
        for field in schema.fields
        for leaf in (field.schema.fields if names.is_union(field.schema) else (field,))
    ]
    tags = [dict(leaf.parameters).get(names.TAG) for leaf in leaves]
    try:
        numbers = [None if text is None else int(text) for text in tags]
    except ValueError:
        raise DataError(f"A field of {schema.name} has an illegal number: {tags}") from None
    free = (number for number in count(1) if number not in numbers and number not in _RESERVED)
    return (next(free) if number is None else number for number in numbers)


@dataclass(slots=True)
class FieldText:
    """A field. `label` is empty, `repeated` or `optional`; `params` become those of `(confluent.field_meta)`."""

    name: str
    type: str
    number: int
    label: str = ""
    params: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Returns its text."""
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
        """Returns its text, zero first as proto3 requires."""
        ordered = sorted(self.symbols.items(), key=lambda symbol: symbol[1] != 0)
        alias = ["option allow_alias = true;"] if len(set(self.symbols.values())) < len(self.symbols) else []
        symbols = [f"{name} = {number};" for name, number in ordered]
        return [f"enum {self.name} {{", *_indented([*alias, *symbols]), "}"]


@dataclass(slots=True)
class MessageText:
    """A message: its fields, its oneofs by their names, and the types that it defines."""

    name: str
    fields: list[FieldText] = field(default_factory=list)
    oneofs: dict[str, list[FieldText]] = field(default_factory=dict)
    types: list[MessageText | EnumText] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Returns its text: a blank line precedes oneofs and types."""
        oneofs = [
            [f"oneof {name} {{", *_indented(_all(field.lines() for field in fields)), "}"]
            for name, fields in self.oneofs.items()
        ]
        parts = [
            _all(field.lines() for field in self.fields),
            _all(oneofs),
            _all(nested.lines() for nested in self.types),
        ]
        inner: list[str] = []
        for place, part in enumerate(parts):
            if part and place and inner:
                inner.append("")
            inner += _indented(part)
        if not inner:
            return [f"message {self.name} {{}}"]
        return [f"message {self.name} {{", *inner, "}"]


def file_text(package: str, imports: Iterable[str], messages: Sequence[MessageText]) -> str:
    """Returns a file of proto3, in the form of the registry's clients."""
    lines = ['syntax = "proto3";', *([f"package {package};"] if package else []), ""]
    if imported := sorted(set(imports)):
        lines += [*(f'import "{name}";' for name in imported), ""]
    return "\n".join([*lines, *_all(message.lines() for message in messages), ""])


def _all(parts: Iterable[Sequence[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _indented(lines: Iterable[str]) -> list[str]:
    """Puts two spaces before each line, also before blank ones."""
    return [f"  {line}" for line in lines]
