"""References to values that are kept elsewhere, `${provider:path:key}` and `${provider:key}`, as Connect reads them.

Pure. The syntax is that of Apache Kafka's ConfigTransformer: no escapes, no nesting, and inserted values are not
searched again. A reference without a known value stays unchanged. Its regular expression takes time with the cube of a
text's length; here a text is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

MIN_ELSEWHERE = 8  # a shorter value in another key of a task is assumed to be a coincidence

Values = Mapping["ConfigReference", str]


@dataclass(frozen=True, slots=True, order=True)
class ConfigReference:
    """One reference. `path` is empty if it has none."""

    provider: str
    path: str
    key: str

    def __str__(self) -> str:
        """Returns the reference as written in a configuration."""
        return f"${{{self.provider}:{self.path}:{self.key}}}" if self.path else f"${{{self.provider}:{self.key}}}"


def references(text: str) -> list[ConfigReference]:
    """Returns all references in a text, in their order."""
    return [reference for _, _, reference in _places(text)]


def with_references(text: str, instead: Callable[[str, ConfigReference], str]) -> str:
    """Returns the text with what `instead` returns for each reference, given as it is written and as its parts."""
    parts, at = [], 0
    for begin, end, reference in _places(text):
        parts += [text[at:begin], instead(text[begin:end], reference)]
        at = end
    return "".join((*parts, text[at:])) if parts else text


def references_of(*configs: Mapping[str, str]) -> tuple[ConfigReference, ...]:
    """Returns all references in some configurations, sorted. Cheap for those without."""
    unique = {
        reference
        for config in configs
        if "${" in "\0".join(config.values())
        for v in config.values()
        for reference in references(v)
    }
    return tuple(sorted(unique))


def substituted(text: str, values: Values) -> str:
    """Returns the text with the values in place of their references."""
    return with_references(text, lambda written, reference: values.get(reference, written))


def resolved(config: Mapping[str, str], values: Values) -> dict[str, str]:
    """Returns the configuration with the values in place of their references."""
    return {key: substituted(text, values) for key, text in config.items()}


def restored(tasks: Iterable[Mapping[str, str]], connector: Mapping[str, str], values: Values) -> list[dict[str, str]]:
    """Returns a connector's task configurations, made from its resolved configuration, in the form to store: with the
    references back in their places, so that resolving them gives the same values again.

    Connect gives a task's key the text of the same key in the connector's configuration, if that holds a reference.
    So does this, unless the connector has changed the value. Values in other texts are replaced too,
    except values so short that they may be there by chance.
    """
    before = {key: (text, substituted(text, values)) for key, text in connector.items() if references(text)}
    by_value = {values[reference]: str(reference) for reference in references_of(connector) if values.get(reference)}
    any_value = _one_of(by_value)
    long_value = _one_of(value for value in by_value if len(value) >= MIN_ELSEWHERE)

    def back(key: str, text: str) -> str:
        if key in before and text == before[key][1]:
            return before[key][0]
        pattern = any_value if key in before else long_value
        return pattern.sub(lambda match: by_value[match[0]], text) if pattern else text

    return [{key: back(key, text) for key, text in task.items()} for task in tasks]


def _one_of(values: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(values, key=lambda value: (-len(value), value))  # a value may be a part of another
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _places(text: str) -> Iterator[tuple[int, int, ConfigReference]]:
    """Returns begin, end and parts of each reference: from `${` to the next `}`, with a colon between."""
    begin = text.find("${")
    while begin >= 0:
        end = text.find("}", begin + 2)
        if end < 0:
            return
        provider, colon, rest = text[begin + 2 : end].partition(":")
        path, second, key = rest.partition(":")
        if colon:
            yield (
                begin,
                end + 1,
                ConfigReference(provider, path, key) if second else ConfigReference(provider, "", rest),
            )
        begin = text.find("${", end + 1)
