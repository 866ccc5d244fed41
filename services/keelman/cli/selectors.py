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
    """A condition on a label: it has any of these values, or any value (None); `other` negates the condition."""

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
        return {
            requirement.key: requirement.values[0]
            for requirement in self.asked
            if requirement.values and len(requirement.values) == 1 and not requirement.other
        }

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Tells whether labels meet all conditions."""
        return all(requirement.holds(labels) for requirement in self.asked)

    def __call__(self, resource: Any) -> bool:
        """Tells whether a resource's labels meet all conditions."""
        return self.takes(dict(columns.labels_of(resource))) if self.asked else True


def selector(texts: Sequence[str]) -> Selector:
    """Returns the selector of some -l options, all of which must hold. Raises InvalidArgument."""
    return Selector([requirement for text in texts for requirement in _requirements(text)])


def selector_of(kind: Kind, texts: Sequence[str]) -> Selector:
    """Returns the selector of some -l options for a kind. Raises InvalidArgument also for a kind without labels."""
    if texts:
        check_option("-l", kind, [k for k in KINDS if "label" in k.verbs])
    return selector(texts)


def _requirements(text: str) -> Iterator[Requirement]:
    at = 0
    while at < len(text) or at == 0:
        match = _PART.match(text, at)
        if match is None or match.end() == at:
            raise InvalidArgument.of("-l", text, LEGAL)
        at = match.end()
        if match["none"]:
            yield Requirement(match["none"], None, other=True)
        elif match["word"]:
            values = tuple(part.strip() for part in match["set"].split(","))
            if not all(values):
                raise InvalidArgument.of("-l", text, LEGAL)
            yield Requirement(match["key"], values, other=match["word"] == "notin")
        elif match["sign"]:
            yield Requirement(match["key"], (match["value"],), other=match["sign"].startswith("!"))
        else:
            yield Requirement(match["key"], None)
    if text.rstrip().endswith(","):
        raise InvalidArgument.of("-l", text, LEGAL)
