"""Limits of fetching, from a Java consumer's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keelman.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Limits of a Fetch and of the records that are held until the reader takes them, in bytes and milliseconds.

    A broker without data answers after `max_wait_ms`; while nothing comes, that `grows` to some seconds.
    After records of the `calm` topics alone a moment passes before the next request. With `makes_way` the request goes
    out in the loop's next turn if little came: the reader of the records goes first.
    """

    max_wait_ms: int = 500
    grows: bool = True
    min_bytes: int = 1
    answer_bytes: int = 4 << 20
    partition_bytes: int = 1 << 20
    held_bytes: int = 4 << 20
    check_crcs: bool = True
    rack: str = ""
    calm: frozenset[str] = frozenset()
    makes_way: bool = False

    @staticmethod
    def of(properties: Mapping[str, str]) -> FetchSettings:
        """Reads the limits from a Java consumer's properties; defaults where a key is missing. Raises InvalidArgument
        for a value that is not a number."""
        plain = FetchSettings()

        def number(key: str, default: int) -> int:
            text = properties.get(key, "").strip()
            if text and not text.isdigit():
                raise InvalidArgument.of(key, text, "a number")
            return int(text or default)

        answer_bytes = number("fetch.max.bytes", plain.answer_bytes)
        return FetchSettings(
            max_wait_ms=number("fetch.max.wait.ms", plain.max_wait_ms),
            grows="fetch.max.wait.ms" not in properties,
            min_bytes=number("fetch.min.bytes", plain.min_bytes),
            answer_bytes=answer_bytes,
            held_bytes=min(answer_bytes, plain.held_bytes),
            partition_bytes=number("max.partition.fetch.bytes", plain.partition_bytes),
            check_crcs=properties.get("check.crcs", "true").strip().lower() != "false",
            rack=properties.get("client.rack", "").strip(),
        )
