"""Waits in the calling thread until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, seconds: float = 300.0, every: float = 0.02) -> T:
    """Waits until the condition returns something, and returns it. For threads; `eventually` is for coroutines.

    A request that brokers refuse is repeated, as for the first group of a new broker; an AssertionError ends the wait.
    """
    deadline = time.monotonic() + seconds
    problem: KafkaException | None = None
    while True:
        try:
            if value := condition():
                return value
            problem = None
        except KafkaException as error:
            problem = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}") from problem
        time.sleep(every)
