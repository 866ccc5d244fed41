"""Transforms that change which value stands where: a field alone, fields as a key, everything in one level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keelman.connect.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type, one_of_any_case
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java_numbers import java_class, type_of
from keelman.connect.record import Record
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.transforms.base import (
    IllegalArgumentError,
    Part,
    Recent,
    Transform,
    a_map,
    a_struct,
    got,
    null_default,
    some_names,
    with_fields,
)


class FieldPath:
    """Where a field is: with version 2 a dot leads into it, and back-ticks hold a name together that has dots."""

    def __init__(self, text: str, version: str) -> None:
        """Raises ConfigValueError."""
        self.text = text
        self.steps = _steps(text) if version.upper() == "V2" else [text]

    def field(self, schema: Schema) -> Field | None:
        """The field's place in a schema; None when it is not there. Raises DataError on the way through no struct."""
        found: Field | None = None
        for step in self.steps:
            if found is not None:
                schema = found.schema
            if schema.type != "struct":
                raise DataError("Cannot look up fields on non-struct type")
            found = next((field for field in schema.fields if field.name == step), None)
            if found is None:
                return None
        return found

    def of_struct(self, struct: Struct, *, defaults: bool) -> Any:
        """The field's value, None where the way to it ends before."""
        value: Any = struct
        for step in self.steps:
            if value is None:
                return None
            inner = a_struct(value, "nested field access")
            field = next(field for field in inner.schema.fields if field.name == step)
            value = got(inner, field, defaults=defaults)
        return value

    def of_map(self, given: Mapping[Any, Any]) -> Any:
        """The same in maps."""
        for step in self.steps[:-1]:
            inner = given.get(step)
            if inner is None:
                return None
            given = a_map(inner, "nested field access")
        return given.get(self.steps[-1])


def _steps(text: str) -> list[str]:
    steps, at = [], 0
    while at < len(text):
        if text[at] == "`":
            end = at + 1
            while end < len(text) and not (
                text[end] == "`" and text[end - 1] != "\\" and text[end + 1 : end + 2] in ("", ".")
            ):
                end += 1
            if end >= len(text):
                raise ConfigValueError(
                    "field",
                    text,
                    whole=f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
                    f"position {at} to escape it",
                )
            steps.append(text[at + 1 : end].replace("\\`", "`"))
            at = end + 2
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            steps.append(text[at:end].replace("\\`", "`"))
            at = end + 1
    if text.endswith("."):
        steps.append("")
    return steps or [""]


class ExtractField(Transform):
    """Puts one of its fields in the place of the key or the value."""

    name = "ExtractField"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`field`, `field.syntax.version`, `replace.null.with.default`."""
        doc = "V1: `field` is a name. V2: a path with dots; back-ticks hold a name together that has dots."
        versions = one_of_any_case("V1", "V2")
        return ConfigDef(
            ConfigKey("field", Type.STRING, REQUIRED, doc="The field.", importance=Importance.MEDIUM),
            ConfigKey("field.syntax.version", Type.STRING, "V1", Importance.HIGH, doc, versions),
            null_default(),
        )

    def __init__(self, config: Mapping[str, str], part: Part = "") -> None:
        super().__init__(config, part)
        self._path = FieldPath(self.config["field"], self.config["field.syntax.version"])
        self._defaults: bool = self.config["replace.null.with.default"]

    def apply(self, record: Record) -> Record:
        """Null stays null. Raises IllegalArgumentError for a field that a schema does not have."""
        schema, value = self.data(record)
        if schema is None:
            given = None if value is None else a_map(value, "field extraction")
            return self.changed(record, None, None if given is None else self._path.of_map(given))
        struct = None if value is None else a_struct(value, "field extraction")
        field = self._path.field(schema)
        if field is None:
            raise IllegalArgumentError(f"Unknown field: {self._path.text}")
        inner = None if struct is None else self._path.of_struct(struct, defaults=self._defaults)
        return self.changed(record, field.schema, inner)


class ValueToKey(Transform):
    """Makes a key of fields of the value."""

    name = "ValueToKey"
    parts = ("",)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`fields`, `replace.null.with.default`."""
        return ConfigDef(
            ConfigKey(
                "fields", Type.LIST, REQUIRED, doc="The fields.", importance=Importance.HIGH, validator=some_names
            ),
            null_default(),
        )

    def __init__(self, config: Mapping[str, str], part: Part = "") -> None:
        super().__init__(config, part)
        self._fields: list[str] = self.config["fields"]
        self._defaults: bool = self.config["replace.null.with.default"]
        self._schemas = Recent()

    def apply(self, record: Record) -> Record:
        """Raises DataError for a field that the value's schema does not have."""
        purpose = "copying fields from value to key"
        if record.value_schema is None:
            given = a_map(record.value, purpose)
            record.key_schema, record.key = None, {name: given.get(name) for name in self._fields}
            return record
        struct = a_struct(record.value, purpose)
        made: Schema | None = self._schemas.get(struct.schema)
        if made is None:
            made = self._schemas.put(struct.schema, self._key_schema(struct.schema))
        values = {field.name: got(struct, field, defaults=self._defaults) for field in made.fields}
        record.key_schema, record.key = made, Struct(made, values)
        return record

    def _key_schema(self, schema: Schema) -> Schema:
        by_name = {field.name: field for field in schema.fields}
        for name in self._fields:
            if name not in by_name:
                raise DataError(f"Field does not exist: {name}")
        return with_fields(Schema("struct"), tuple(by_name[name] for name in self._fields))


class Flatten(Transform):
    """Brings the fields of structs or maps within to the top, under names that tell their way."""

    name = "Flatten"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`delimiter`."""
        doc = "Stands between the names of the way."
        return ConfigDef(ConfigKey("delimiter", Type.STRING, ".", Importance.MEDIUM, doc))

    def __init__(self, config: Mapping[str, str], part: Part = "") -> None:
        super().__init__(config, part)
        self._delimiter: str = self.config["delimiter"]
        self._schemas = Recent()

    def apply(self, record: Record) -> Record:
        """Raises DataError for a map within a struct."""
        schema, value = self.data(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._maps(a_map(value, "flattening"), "", flat)
            return self.changed(record, None, flat)
        struct = a_struct(value, "flattening")
        made: Schema | None = self._schemas.get(schema)
        if made is None:
            fields = tuple(self._fields(schema, "", optional=schema.optional, default=schema.default))
            made = self._schemas.put(schema, with_fields(schema, fields))
        values: dict[str, Any] = {}
        self._structs(struct, "", values)
        return self.changed(record, made, Struct(made, values))

    def _name(self, way: str, name: str) -> str:
        return f"{way}{self._delimiter}{name}" if way else name

    def _maps(self, given: Mapping[Any, Any], way: str, flat: dict[str, Any]) -> None:
        for key, value in given.items():
            if not isinstance(key, str):
                raise ClassCastError(java_class(key), "java.lang.String")
            name = self._name(way, key)
            kind = "string" if value is None else type_of(value)
            if kind is None:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(value)} which is not "
                    "supported by Connect's data API"
                )
            if kind == "map":
                self._maps(value, name, flat)
            elif kind == "struct":
                text = f"Flatten transformation does not support {kind.upper()} for record without schemas"
                raise DataError(f"{text} (for field {name}).")
            else:
                flat[name] = value

    def _fields(self, schema: Schema, way: str, *, optional: bool, default: Any) -> list[Field]:
        found: list[Field] = []
        for field in schema.fields:
            name = self._name(way, field.name)
            inner = field.schema
            may = optional or inner.optional
            stands = inner.default
            if stands is None and default is not None:
                stands = got(default, field, defaults=True)
            if inner.type == "struct":
                found += self._fields(inner, name, optional=may, default=stands)
            elif inner.type == "map":
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                same = inner.optional == may and inner.default == stands
                found.append(Field(name, inner if same else replace(inner, optional=may, default=stands)))
        return found

    def _structs(self, struct: Struct, way: str, values: dict[str, Any]) -> None:
        for field in struct.schema.fields:
            name, value = self._name(way, field.name), got(struct, field, defaults=True)
            if field.schema.type == "struct":
                if value is not None:
                    self._structs(value, name, values)
            else:
                values[name] = value


class ClassCastError(DataError):
    """Java's ClassCastException."""

    java_name = "java.lang.ClassCastException"

    def __init__(self, given: str, wanted: str) -> None:
        where = f"({given} and {wanted} are in module java.base of loader 'bootstrap')"
        super().__init__(f"class {given} cannot be cast to class {wanted} {where}")
