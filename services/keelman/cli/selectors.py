"""Parses selectors: the labels that a resource must have, in the form of the option -l."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.cli.kinds import KINDS, Kind, check_option
from keelman.cli.output import columns
from keelman.model.errors import InvalidArgument

LEGAL = "key=value, key!=value, key in (a,b), key notin (a,b), key or !key; several with commas"
_PART = re.compile(
    r"\s*(?:(?P<key>[^\s=!,()]+)\s*(?:(?P<sign>!?==?)\s*(?P<value>[^,()]*?)|(?P<word>in|notin)\s*\((?P<set>[^()]*)\))?"
    r"|!\s*(?P<none>[^\s=!,()]+))\s*(?:,|$)"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on one label: it has one of these values, or any value (None); `other` negates the condition."""

    key: str
    values: tuple[str, ...] | None
    other: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tells whether labels meet the condition."""
        has = self.key in labels if self.values is None else labels.get(self.key) in self.values
        return has != self.other


@dataclass(frozen=True, slots=True)
class Selector:
    """The conditions of -l, all of which labels must meet. A selector without conditions takes everything."""

    asked: Sequence[Requirement] = ()

    @property
    def equal(self) -> dict[str, str]:
        """The conditions that the state service can filter by: one equal value for a key."""
        return {one.key: one.values[0] for one in self.asked if one.values and len(one.values) == 1 and not one.other}

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Tells whether labels meet all conditions."""
        return all(one.holds(labels) for one in self.asked)

    def __call__(self, resource: Any) -> bool:
        """Tells whether a resource's labels meet all conditions."""
        return self.takes(dict(columns.labels_of(resource))) if self.asked else True


def selector(texts: Sequence[str]) -> Selector:
    """Returns the selector of some -l options, all of which must hold. Raises InvalidArgument."""
    return Selector([one for text in texts for one in _requirements(text)])


def selector_of(kind: Kind, texts: Sequence[str]) -> Selector:
    """Returns the selector of some -l options for a kind. Raises InvalidArgument also for a kind without labels."""
    if texts:
        check_option("-l", kind, [k for k in KINDS if "label" in k.verbs])
    return selector(texts)


def _requirements(text: str) -> Iterator[Requirement]:
    at = 0
    while at < len(text) or at == 0:
        found = _PART.match(text, at)
        if found is None or found.end() == at:
            raise InvalidArgument.of("-l", text, LEGAL)
        at = found.end()
        if found["none"]:
            yield Requirement(found["none"], None, other=True)
        elif found["word"]:
            values = tuple(one.strip() for one in found["set"].split(","))
            if not all(values):
                raise InvalidArgument.of("-l", text, LEGAL)
            yield Requirement(found["key"], values, other=found["word"] == "notin")
        elif found["sign"]:
            yield Requirement(found["key"], (found["value"],), other=found["sign"].startswith("!"))
        else:
            yield Requirement(found["key"], None)
    if text.rstrip().endswith(","):
        raise InvalidArgument.of("-l", text, LEGAL)
