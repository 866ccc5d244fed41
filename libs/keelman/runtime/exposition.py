"""Writes metrics in Prometheus' text format 0.0.4 on request; keeps nothing between requests.

Not by prometheus_client, which takes 14 times as long for each sample: one worker may have 10,000 connectors. The tests
read this output with its parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE, UNTYPED = "counter", "gauge", "untyped"  # a counter's name ends in _total


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name, its kind and one sentence about it."""

    name: str
    kind: str
    about: str


class Exposition:
    """Samples, gathered in any order and written family by family."""

    def __init__(self) -> None:
        self._samples: dict[Family, list[str]] = {}

    def add(self, family: Family, value: float, labels: str = "") -> None:
        """Adds one sample; `labels` comes from `labels_of`, perhaps with more appended."""
        lines = self._samples.get(family)
        if lines is None:
            lines = self._samples[family] = []
        lines.append(f"{family.name}{{{labels}}} {value}" if labels else f"{family.name} {value}")

    def families(self) -> Iterator[bytes]:
        """Yields the text, one piece a family."""
        for family, lines in self._samples.items():
            head = f"# HELP {family.name} {_help(family.about)}\n# TYPE {family.name} {family.kind}\n"
            yield (head + "\n".join(lines) + "\n").encode()


def labels_of(labels: Mapping[str, str]) -> str:
    """Returns labels without braces: a="b",c="d"."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def escaped(value: str) -> str:
    """Returns a label's value as it is written between quotes."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
