"""Decides whether and when a failed task or connector is restarted. Pure: no clock; randomness comes from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache

from keelman.connect.config.life_keys import ATTEMPTS, FIRST_MS, MAX_MS, RESET_MS
from keelman.connect.errors import ConfigValueError, RetriableConnectError
from keelman.model.errors import KeelmanError, Unavailable
from keelman.workers.properties.reader import setting

PASSING_SECONDS = (0.1, 10.0)

# Only another configuration can help, or other credentials.
CONFIG_INVALID, FAILED = "CONFIG_INVALID", "TASK_FAILED"
CONFIG_REASONS = frozenset(
    {CONFIG_INVALID, "BROKER_REFUSED", "CONNECTOR_CLASS_UNKNOWN", "INVALID_ARGUMENT", "PLUGIN_BROKEN", "RUNS_ON_NODE"}
) | {"ERROR_BUDGET_SPENT"}  # so much was passed over that a user should look
# A permission has to be given, which needs no other configuration.
FORBIDDEN_REASONS = frozenset({"NOT_ALLOWED"})
# Its process is gone. Once may be chance; again and again the cause is the code that runs there alone.
CRASH_REASONS = frozenset({"SLOT_LOST", "MEMORY_BOUND", "PLUGIN_DIED", "PLUGIN_HUNG"})

_KEYS = tuple(key.name for key in (ATTEMPTS, FIRST_MS, MAX_MS, RESET_MS))


class FailureCause(Enum):
    """The kind of a failure, which decides whether it is tried again."""

    PASSING = "passing"
    """Something that it needs is away: brokers, a slot, a lease. Tried again without end, as Connect's clients do."""
    OWN = "own"
    """The connector's code or its data. Tried again within the budget."""
    FORBIDDEN = "forbidden"
    """A broker does not permit it. FAILED, so that users see it; tried again ever less often, at no cost."""
    CONFIG = "config"
    """Its configuration. Not tried again."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The rules by which a connector and its tasks are tried again. `attempts`: -1 without end, 0 never, as in
    Connect."""

    attempts: int = ATTEMPTS.default
    first_seconds: float = FIRST_MS.default / 1000
    most_seconds: float = MAX_MS.default / 1000
    reset_seconds: float = RESET_MS.default / 1000


def policy_of(config: Mapping[str, str], worker: Mapping[str, str]) -> RestartPolicy:
    """Returns the connector's policy; the worker's properties have the defaults. Raises InvalidArgument."""
    texts = (config.get(key, "") for key in _KEYS)
    return _policy(*(text if text.strip() else worker.get(key, "") for key, text in zip(_KEYS, texts, strict=True)))


@lru_cache(maxsize=64)  # most connectors have the same
def _policy(*texts: str) -> RestartPolicy:
    settings = dict(zip(_KEYS, texts, strict=True))
    first, most, reset = (setting(key, settings) / 1000 for key in (FIRST_MS, MAX_MS, RESET_MS))
    return RestartPolicy(setting(ATTEMPTS, settings), first, max(first, most), reset)


@dataclass(slots=True)
class Restarts:
    """The failures of one task or connector since it was last healthy. `attempts` are those that its budget paid,
    `forbidden` those for lack of a permission.

    `passing_seconds` are the first and the longest delay where no budget is used. `chance` returns numbers from 0 up to
    1: delays differ, so that tasks that failed together do not come back together.
    """

    policy: RestartPolicy
    chance: Callable[[], float]
    attempts: int = 0
    passing_seconds: tuple[float, float] = PASSING_SECONDS
    forbidden: int = 0
    _passing: int = 0
    _crashes: int = 0

    def failed(
        self, reason: str, *, retriable: bool, alone: bool, healthy_seconds: float
    ) -> tuple[FailureCause, float | None]:
        """Returns the kind of this failure, and the seconds until the next attempt; None when there is none.

        `alone` tells whether no other code ran in the process that is gone; `healthy_seconds` how long all was well
        before.
        """
        if healthy_seconds >= self.policy.reset_seconds:
            self.healthy()
        elif healthy_seconds >= self.passing_seconds[1]:
            self._passing = 0
        cause = self._cause(reason, retriable=retriable, alone=alone)
        if cause is FailureCause.CONFIG:
            return cause, None
        if cause is FailureCause.PASSING:
            self._passing += 1
            return cause, self._delay(*self.passing_seconds, self._passing)
        if cause is FailureCause.FORBIDDEN and self.policy.attempts:
            self.forbidden += 1
            return cause, self._delay(self.policy.first_seconds, self.policy.most_seconds, self.forbidden)
        if 0 <= self.policy.attempts <= self.attempts:
            return cause, None
        self.attempts += 1
        return cause, self._delay(self.policy.first_seconds, self.policy.most_seconds, self.attempts)

    def healthy(self) -> None:
        """Makes the budget whole again: all is well."""
        self.attempts = self.forbidden = self._passing = self._crashes = 0

    @property
    def unhealthy(self) -> bool:
        """Whether there were attempts since it was last healthy."""
        return self.attempts + self.forbidden > 0

    def _cause(self, reason: str, *, retriable: bool, alone: bool) -> FailureCause:
        if reason in CONFIG_REASONS:
            return FailureCause.CONFIG
        if reason in FORBIDDEN_REASONS:
            return FailureCause.FORBIDDEN
        if reason in CRASH_REASONS:
            self._crashes += 1
            return FailureCause.OWN if alone and self._crashes > 1 else FailureCause.PASSING
        return FailureCause.PASSING if retriable else FailureCause.OWN

    def _delay(self, first: float, most: float, tries: int) -> float:
        whole: float = min(most, first * 2 ** min(tries - 1, 32))
        return whole * (0.5 + self.chance() / 2)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The restart state of a failed task or connector, for its status. `next` is empty when there is none."""

    reason: str
    attempt: int
    most: int
    next: str = ""

    @staticmethod
    def made(reason: str, restarts: Restarts, delay: float | None, now: datetime) -> Attempt:
        """Makes the state after a failure."""
        at = "" if delay is None else stamp(now + timedelta(seconds=delay))
        if reason in FORBIDDEN_REASONS and at:
            return Attempt(reason, restarts.forbidden, -1, at)
        return Attempt(reason, restarts.attempts, restarts.policy.attempts, at)

    def value(self) -> dict[str, object]:
        """Returns it as a status shows it."""
        shown: dict[str, object] = {"reason": self.reason, "attempt": self.attempt}
        if self.most >= 0:
            shown["max_attempts"] = self.most
        return {**shown, "next": self.next} if self.next else shown

    def explained(self, trace: str) -> str:
        """Returns the trace with one more line about the next step. Unchanged when it stays as in Connect."""
        if self.next:
            line = f"Next automatic restart ({self._number}) at {self.next}: {self.reason}"
        elif self.most > 0 and self.attempt:
            line = f"No more automatic restarts: {self.attempt} of {self.most} failed: {self.reason}"
        else:
            return trace
        return _with_line(trace, line)

    def held(self, trace: str) -> str:
        """Returns the trace with one more line: that the next restart waits for the connector to be resumed."""
        return _with_line(trace, f"Next automatic restart ({self._number}) when it is resumed: {self.reason}")

    @property
    def _number(self) -> str:
        of = f" of {self.most}" if self.most >= 0 else ""
        return f"{ordinal(max(1, self.attempt))}{of}"


def _with_line(trace: str, line: str) -> str:
    return f"{trace.rstrip()}\n{line}\n" if trace else f"{line}\n"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ..., 11th, ..."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def reason_of(error: Exception) -> tuple[str, bool]:
    """Returns the reason of an error before there was a copy run, and whether it passes by itself."""
    if isinstance(error, ConfigValueError):
        return CONFIG_INVALID, False
    if isinstance(error, KeelmanError):
        return error.reason, isinstance(error, Unavailable) or error.reason == "PLUGIN_NOT_READY"
    return FAILED, isinstance(error, RetriableConnectError)


def stamp(at: datetime) -> str:
    """Returns a time as a status shows it, e.g. 2025-11-21T21:05:03Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
