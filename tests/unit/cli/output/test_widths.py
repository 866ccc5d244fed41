"""The default tables on a terminal of 80 columns, of every kind that can be listed, filled with long values."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from rich.console import Console

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_TYPE_SOURCE, Connector
from keelman.cli import kinds
from keelman.cli.client.plugin_classes import ListedClass
from keelman.cli.kinds import KINDS, PLUGIN_CLASSES, Kind
from keelman.cli.output.columns import COLUMNS, OutputColumn
from keelman.cli.output.lines import plan_lines, topic_line
from keelman.cli.output.printing import table
from keelman.cli.output.widths import MIN_NAME, MIN_TEXT, fitted_widths

TERMINAL = 80
LONG = "a-very-long-name-as-a-user-may-choose-one-0123456789-0123456789"
FEW, MANY = 16, 1_234_567
WORDS = {"type": "transformation"}
"""Fields that are texts on the wire, but whose values are single words."""
SHOWN = (*KINDS, PLUGIN_CLASSES)


def value_for(field: Any) -> Any:
    """A long value for a field: of enums the longest word, of texts a long name."""
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return WORDS.get(field.name, LONG)
        case FieldDescriptor.TYPE_BYTES:
            return LONG.encode()
        case FieldDescriptor.TYPE_BOOL:
            return True
        case FieldDescriptor.TYPE_ENUM:
            return max(field.enum_type.values, key=lambda value: len(value.name) * bool(value.number)).number
        case FieldDescriptor.TYPE_INT64 | FieldDescriptor.TYPE_UINT64:
            return MANY
    return FEW


def filled(message: Any, depth: int = 5) -> Any:
    """The message with a long value in each of its fields, one item in each repeated field."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None:
            value = value_for(field)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        elif depth and not field.message_type.GetOptions().map_entry:
            to = getattr(message, field.name)
            filled(to.add() if field.is_repeated else to, depth - 1)
    return message


def lines_of(kind: Kind) -> list[Any]:
    """The objects of which a table of this kind shows a line each."""
    if kind is PLUGIN_CLASSES:
        return [ListedClass(f"com.acme.{LONG}", "transformation", LONG, LONG, LONG)]
    noun = (kind.wire or kind.singular).replace("-", "_")
    module = importlib.import_module(f"keelman.api.{kind.area}.v1.{noun}_pb2")
    resource = filled(getattr(module, "".join(word.capitalize() for word in noun.split("_")))())
    if kind is kinds.CONNECTORS:
        resource.ClearField("lag_bytes")  # the lag is counted in one unit
    if kind is kinds.TOPICS:
        return [topic_line(resource)]
    return list(plan_lines([resource])) if kind is kinds.PLANS else [resource]


def printed(kind: Kind, lines: list[Any], room: int = TERMINAL) -> list[str]:
    console = Console(width=room, highlight=False)
    with console.capture() as capture:
        console.print(table(kind, lines, wide=False, room=room))
    return capture.get().splitlines()


def columns_of(kind: Kind) -> list[OutputColumn]:
    return [column for column in COLUMNS[kind.plural] if not column.wide]


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.plural)
def test_a_table_of_long_values_fits_with_its_words_and_numbers_whole(kind: Kind) -> None:
    shown = table(kind, lines_of(kind), wide=False, room=TERMINAL)
    widths = [column.max_width for column in shown.columns]
    assert sum(widths) + 2 * (len(widths) - 1) <= TERMINAL
    title, row = printed(kind, lines_of(kind))
    assert max(len(title), len(row)) <= TERMINAL
    assert "\N{HORIZONTAL ELLIPSIS}" not in title
    for column, width, cell in zip(columns_of(kind), widths, (next(c.cells) for c in shown.columns), strict=True):
        if column.name:
            assert width >= MIN_NAME, column.title
        elif not column.text:
            assert width >= len(cell.plain), column.title


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.plural)
def test_a_terminal_that_is_wide_enough_shows_everything(kind: Kind) -> None:
    assert not [line for line in printed(kind, lines_of(kind), 1000) if "\N{HORIZONTAL ELLIPSIS}" in line]


def test_the_names_of_a_connector_are_whole_beside_all_else_that_is_known_of_it() -> None:
    connector = Connector(worker_cluster="orders", name="orders-to-warehouse-1", state="CONNECTOR_STATE_RUNNING")
    connector.type = CONNECTOR_TYPE_SOURCE
    connector.lag_records, connector.worker_id = 123_456, "worker-host-1.example:8083"
    connector.tasks.add(state="CONNECTOR_STATE_FAILED")
    title, row = printed(kinds.CONNECTORS, [connector])
    assert title.split() == ["CLUSTER", "NAME", "TYPE", "STATE", "TASKS", "LEFT"]
    assert row.split()[:2] == ["orders", "orders-to-warehouse-1"]
    assert "\N{HORIZONTAL ELLIPSIS}" not in row


def test_texts_give_way_before_names_and_the_widest_of_them_first() -> None:
    columns = [
        OutputColumn("NAME", str, name=True),
        OutputColumn("A", str, text=True),
        OutputColumn("B", str, text=True),
    ]
    assert fitted_widths(columns, [20, 10, 12], 60) == [20, 10, 12]
    assert fitted_widths(columns, [20, 10, 12], 44) == [20, 10, 10]
    assert fitted_widths(columns, [20, 10, 12], 38) == [18, 8, 8]
    assert fitted_widths(columns, [20, 10, 12], 10) == [MIN_NAME, MIN_TEXT, MIN_TEXT]
