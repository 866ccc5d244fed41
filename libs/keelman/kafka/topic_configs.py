"""Checks the configuration of topics by the keys, types and legal values of Kafka 4.3. Pure.

Source: LogConfig in
https://github.com/apache/kafka/tree/4.3/storage/src/main/java/org/apache/kafka/storage/internals/log
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_INT, _LONG = (1 << 31) - 1, (1 << 63) - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two others."""

    first: int
    last: int

    def problem(self, text: str, *, bounds: bool) -> str:
        """Returns a description of legal values; empty if the text is legal."""
        number = int(text) if _NUMBER.fullmatch(text) else None
        if number is not None and (self.first <= number <= self.last or (not bounds and abs(number) <= self.last)):
            return ""
        return f"a whole number of {self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number of 0 to 1."""

    def problem(self, text: str, *, bounds: bool) -> str:
        """Returns a description of legal values; empty if the text is legal."""
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        return "" if 0 <= number <= 1 else "a number of 0 to 1"


@dataclass(frozen=True, slots=True)
class WordList:
    """One of some words, or several with commas between."""

    legal: tuple[str, ...]
    several: bool = False
    lasting: bool = True
    """False if other versions of Kafka know other words."""

    def problem(self, text: str, *, bounds: bool) -> str:
        """Returns a description of legal values; empty if the text is legal."""
        values = {word.strip() for word in text.split(",")} if self.several else {text}
        if values <= {*self.legal} or not (bounds or self.lasting):
            return ""
        words = ", ".join(self.legal)
        return f"one of {words}, or several separated by commas" if self.several else f"one of {words}"


@dataclass(frozen=True, slots=True)
class Throttled:
    """Replicas as partition:broker with commas between, or * for all."""

    def problem(self, text: str, *, bounds: bool) -> str:
        """Returns a description of legal values; empty if the text is legal."""
        pairs = [word.strip() for word in text.split(",")] if text.strip() else []
        legal = text.strip() == "*" or all(re.fullmatch(r"[0-9]+:[0-9]+", pair) for pair in pairs)
        return "" if legal else "*, or partition:broker with commas between"


_FLAG = WordList(("true", "false"))
_DURATION = Whole(0, _LONG)
TOPIC_CONFIGS: Mapping[str, Whole | Ratio | WordList | Throttled] = {
    "cleanup.policy": WordList(("compact", "delete"), several=True),
    "compression.gzip.level": Whole(-1, 9),
    "compression.lz4.level": Whole(1, 17),
    "compression.type": WordList(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), lasting=False),
    "compression.zstd.level": Whole(-131_072, 22),
    "delete.retention.ms": _DURATION,
    "file.delete.delay.ms": _DURATION,
    "flush.messages": Whole(1, _LONG),
    "flush.ms": _DURATION,
    "follower.replication.throttled.replicas": Throttled(),
    "index.interval.bytes": Whole(0, _INT),
    "leader.replication.throttled.replicas": Throttled(),
    "local.retention.bytes": Whole(-2, _LONG),
    "local.retention.ms": Whole(-2, _LONG),
    "max.compaction.lag.ms": Whole(1, _LONG),
    "max.message.bytes": Whole(0, _INT),
    "message.timestamp.after.max.ms": _DURATION,
    "message.timestamp.before.max.ms": _DURATION,
    "message.timestamp.type": WordList(("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Ratio(),
    "min.compaction.lag.ms": _DURATION,
    "min.insync.replicas": Whole(1, _INT),
    "preallocate": _FLAG,
    "remote.log.copy.disable": _FLAG,
    "remote.log.delete.on.disable": _FLAG,
    "remote.storage.enable": _FLAG,
    "retention.bytes": Whole(-_LONG, _LONG),
    "retention.ms": Whole(-1, _LONG),
    "segment.bytes": Whole(1 << 20, _INT),
    "segment.index.bytes": Whole(4, _INT),
    "segment.jitter.ms": _DURATION,
    "segment.ms": Whole(1, _LONG),
    "unclean.leader.election.enable": _FLAG,
}


def value_problem(key: str, text: str, *, bounds: bool = True) -> str:
    """Returns a description of the legal values of a known key; empty if the text is legal, or the key unknown.

    Without `bounds` only the type is checked: brokers of another version may have other bounds.
    """
    kind = TOPIC_CONFIGS.get(key)
    return "" if kind is None else kind.problem(text, bounds=bounds)


def same_value(key: str, text: str, other: str) -> bool:
    """Whether two texts of a key mean the same, e.g. "compact,delete" and "delete, compact", "1.0" and "1"."""
    match TOPIC_CONFIGS.get(key):
        case Whole() if _NUMBER.fullmatch(text) and _NUMBER.fullmatch(other):
            return int(text) == int(other)
        case Ratio():
            try:
                return float(text) == float(other)
            except ValueError:
                return text == other
        case WordList(several=True) | Throttled():
            return {x.strip() for x in text.split(",")} == {x.strip() for x in other.split(",")}
        case _:
            return text == other
