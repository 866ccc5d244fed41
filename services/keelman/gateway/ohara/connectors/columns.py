"""Checks the columns of a connector: the names and types in rows. Pure."""

from __future__ import annotations

from typing import Any

from keelman.gateway.ohara.definitions.config import COLUMNS
from keelman.gateway.ohara.definitions.connector import DATA_TYPES
from keelman.gateway.ohara.wire.errors import bad_value
from keelman.gateway.ohara.wire.json_types import is_number, type_name

ORDER, NAME, NEW_NAME, DATA_TYPE = "order", "name", "newName", "dataType"


def check_columns(columns: list[Any]) -> None:
    """Raises OharaError for illegal columns."""
    orders = []
    for column in columns:
        if not isinstance(column, dict):
            raise bad_value(f'the {COLUMNS} must be JsObject type, but actual type is "{type_name(column)}"')
        for field in (NAME, NEW_NAME):
            if (
                not isinstance(column.get(field, "" if field == NAME else column.get(NAME)), str)
                or column.get(NAME) is None
            ):
                raise bad_value(f"{COLUMNS}: {field} must be a string")
        kind = column.get(DATA_TYPE)
        if not isinstance(kind, str) or kind.upper() not in DATA_TYPES:
            raise bad_value(f"{COLUMNS}: {DATA_TYPE} {kind!r} is not one of {', '.join(DATA_TYPES)}")
        orders.append(_order(column.get(ORDER)))
    if any(order < 0 for order in orders):
        raise bad_value("order can't be negative number")
    if len({*orders}) != len(orders):
        raise bad_value(f"duplicate order:List({', '.join(map(str, orders))})")


def _order(value: Any) -> int:
    if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdecimal():
        return int(value)
    if is_number(value) and value == int(value):
        return int(value)
    raise bad_value(f"{COLUMNS}: {ORDER} must be a whole number")
