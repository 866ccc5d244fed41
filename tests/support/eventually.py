"""Waits until a state is reached, with a deadline; the only way a test waits."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
from confluent_kafka import KafkaException

from keelman.model.errors import DeadlineExceeded, Unavailable

T = TypeVar("T")
NOT_YET = (AssertionError, OSError, LookupError, RuntimeError)
NO_ANSWER = (KafkaException, httpx.TransportError, Unavailable, DeadlineExceeded)
"""Errors from clients of brokers and services that are starting, moving or delayed by a busy machine."""


async def eventually(
    condition: Callable[[], T | Awaitable[T]], *, seconds: float = 300.0, every: float = 0.05, what: str = ""
) -> T:
    """Returns the condition's first true value; raises AssertionError after the deadline, with its last error."""
    end = time.monotonic() + seconds
    problem: BaseException | None = None
    while True:
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            problem = None
        except (*NOT_YET, *NO_ANSWER) as error:
            problem = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what or inspect.getsource(condition).strip()}") from problem
        await asyncio.sleep(every)
