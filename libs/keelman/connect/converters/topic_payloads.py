"""Converts payloads of several topics at once, for converters whose payloads depend on the topic
(`Converter.by_topic`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keelman.connect.batch_splitting import places_of
from keelman.connect.converters.converter import Converter
from keelman.connect.records import Column
from keelman.connect.schema import Schema


def read(converter: Converter, payloads: list[bytes | None], topics: Sequence[str] | None) -> Column:
    """Returns the values of payloads, each of its topic; `topics` may be None for a converter that does not need them.

    Raises DataError.
    """
    if not converter.by_topic or topics is None or not payloads:
        return converter.to_connect(payloads)
    places = places_of(topics)
    if len(places) == 1:
        return converter.of_topic(topics[0]).to_connect(payloads)
    values: list[Any] = [None] * len(payloads)
    schemas: list[Schema | None] = [None] * len(payloads)
    for topic, indices in places.items():
        column = converter.of_topic(topic).to_connect([payloads[n] for n in indices]).texts()
        for place, n in enumerate(indices):
            values[n], schemas[n] = column.values[place], column.schema_of(place)
    return Column(values, schemas=schemas)


def written(converter: Converter, column: Column, topics: Sequence[str]) -> list[bytes | None]:
    """Returns the payloads of a column's values, each for its topic. Raises DataError."""
    if not converter.by_topic or not column.values:
        return converter.from_connect(column)
    places = places_of(topics)
    if len(places) == 1:
        return converter.of_topic(topics[0]).from_connect(column)
    column = column.texts()
    payloads: list[bytes | None] = [None] * len(column.values)
    for topic, indices in places.items():
        part = Column([column.values[n] for n in indices], schemas=[column.schema_of(n) for n in indices])
        for n, payload in zip(indices, converter.of_topic(topic).from_connect(part), strict=True):
            payloads[n] = payload
    return payloads
