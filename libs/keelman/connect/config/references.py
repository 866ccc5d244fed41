"""References to values that are kept elsewhere, `${provider:path:key}` and `${provider:key}`, as Connect reads them.

Pure. The syntax is that of Apache Kafka's ConfigTransformer: no escapes, no nesting, and what is put in is not looked
through again. A reference that nothing is known about stays as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PATTERN = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
MIN_ELSEWHERE = 8  # a shorter value in another key of a task is taken to be there by chance

Values = Mapping["Reference", str]


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One reference. `path` is empty where there is none."""

    provider: str
    path: str
    key: str

    def __str__(self) -> str:
        """As it stands in a configuration."""
        return f"${{{self.provider}:{self.path}:{self.key}}}" if self.path else f"${{{self.provider}:{self.key}}}"


def references(text: str) -> list[Reference]:
    """All in a text, in their order."""
    return [_reference(match) for match in _PATTERN.finditer(text)] if "${" in text else []


def references_of(*configs: Mapping[str, str]) -> tuple[Reference, ...]:
    """All in some configurations, sorted. Cheap for those without."""
    found = {
        one
        for config in configs
        if "${" in "\0".join(config.values())
        for v in config.values()
        for one in references(v)
    }
    return tuple(sorted(found))


def substituted(text: str, values: Values) -> str:
    """The text with the values in place of their references."""
    if "${" not in text:
        return text
    return _PATTERN.sub(lambda match: values.get(_reference(match), match[0]), text)


def resolved(config: Mapping[str, str], values: Values) -> dict[str, str]:
    """The configuration with the values in place of their references."""
    return {key: substituted(text, values) for key, text in config.items()}


def restored(tasks: Iterable[Mapping[str, str]], connector: Mapping[str, str], values: Values) -> list[dict[str, str]]:
    """Task configurations that a connector made of its resolved configuration, as they are to be stored: references
    back in their places, so that resolving them gives the same again.

    Connect gives a task's key the text that the connector's configuration has under it, where that holds a reference.
    So does this, unless the connector has made something else of the value. Values in other texts are found there too,
    but for those so short that they may be there by chance.
    """
    kept = {key: (text, substituted(text, values)) for key, text in connector.items() if references(text)}
    by_value = {values[one]: str(one) for one in references_of(connector) if values.get(one)}
    any_value = _one_of(by_value)
    long_value = _one_of(value for value in by_value if len(value) >= MIN_ELSEWHERE)

    def back(key: str, text: str) -> str:
        if key in kept and text == kept[key][1]:
            return kept[key][0]
        pattern = any_value if key in kept else long_value
        return pattern.sub(lambda match: by_value[match[0]], text) if pattern else text

    return [{key: back(key, text) for key, text in task.items()} for task in tasks]


def _one_of(values: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(values, key=lambda value: (-len(value), value))  # one may be a part of another
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _reference(match: re.Match[str]) -> Reference:
    return Reference(match[1], match[3] or "", match[4])
