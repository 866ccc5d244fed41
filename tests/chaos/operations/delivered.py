"""Checks the numbers that sources have delivered: every number of each task, and under exactly once none twice."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.chaos_kafka import Topics
from chaos.operations.connectors import WHOLE, Connectors

FIRST = 5


def missing_or_doubled(topics: Topics, connectors: Connectors, *, exactly_once: bool) -> Iterator[str]:
    """One line for each task of a source that has lost numbers or, if that is not permitted, doubled some."""
    for word in WHOLE:
        answer: dict[bytes | None, list[int]] = {}
        for topic in connectors.topics(word):
            for partition in topics.partitions(topic):
                for key, values in topics.by_key(partition).items():
                    answer.setdefault(key, []).extend(int(value or b"-1") for value in values)
        for key, numbers in answer.items():
            task = f"{connectors.full(word)}, task {(key or b'0').decode()}"
            lost = sorted({*range(max(numbers) + 1)}.difference(numbers))
            doubled = len(numbers) - len({*numbers})
            if lost:
                yield f"{task}: {len(lost)} of {max(numbers) + 1} numbers lost: {lost[:FIRST]}"
            if doubled and exactly_once:
                yield f"{task}: {doubled} numbers doubled"
