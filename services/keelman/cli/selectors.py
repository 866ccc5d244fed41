"""Reads selectors: which labels a resource has to have, as people type it behind -l."""

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
    """A condition on one label: to have one of these values, to have any (None) or, where it is `other`, not to."""

    key: str
    values: tuple[str, ...] | None
    other: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels are as it asks."""
        has = self.key in labels if self.values is None else labels.get(self.key) in self.values
        return has != self.other


@dataclass(frozen=True, slots=True)
class Selector:
    """The conditions of -l, all of which labels must meet. One of none takes everything."""

    asked: Sequence[Requirement] = ()

    @property
    def equal(self) -> dict[str, str]:
        """What the state service can choose by itself."""
        return {one.key: one.values[0] for one in self.asked if one.values and len(one.values) == 1 and not one.other}

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether labels are as it asks."""
        return all(one.holds(labels) for one in self.asked)

    def __call__(self, resource: Any) -> bool:
        """Whether a resource has the labels that are asked for."""
        return self.takes(dict(columns.labels_of(resource))) if self.asked else True


def selector(texts: Sequence[str]) -> Selector:
    """What -l says, in texts that all have to hold. Raises InvalidArgument."""
    return Selector([one for text in texts for one in _requirements(text)])


def selector_of(kind: Kind, texts: Sequence[str]) -> Selector:
    """The same for a kind. Raises InvalidArgument for one that has no labels."""
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
