"""Restarts: after any failures the budget holds, delays remain within bounds, and health restores the budget."""

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.model.errors import DeadlineExceeded, InvalidArgument, NotFound, Unauthenticated, Unavailable
from keelman.worker.restart_policy import Attempt, FailureCause, RestartPolicy, Restarts, ordinal, policy_of, reason_of

REASONS = (
    "TASK_FAILED",
    "BROKER_LOST",
    "SLOT_LOST",
    "CONFIG_INVALID",
    "BROKER_REFUSED",
    "LINK_LOST",
    "PLUGIN_HUNG",
    "NOT_ALLOWED",
)
POLICIES = st.builds(
    RestartPolicy,
    attempts=st.integers(-1, 5),
    first_seconds=st.floats(0.001, 10),
    most_seconds=st.floats(10, 1000),
    reset_seconds=st.floats(20, 1000),
)
FAILURES = st.lists(
    st.tuples(st.sampled_from(REASONS), st.booleans(), st.booleans(), st.floats(0, 15)), min_size=1, max_size=30
)


@settings(deadline=None)
@given(POLICIES, FAILURES, st.randoms(use_true_random=False))
def test_the_budget_holds_and_delays_stay_within_bounds(
    policy: RestartPolicy, failures: list[tuple[str, bool, bool, float]], source: random.Random
) -> None:
    restarts, own = Restarts(policy, source.random), 0
    for reason, retriable, alone, healthy in failures:
        cause, delay = restarts.failed(reason, retriable=retriable, alone=alone, healthy_seconds=healthy)
        assert (cause is FailureCause.CONFIG) == (reason in ("CONFIG_INVALID", "BROKER_REFUSED"))
        if cause is FailureCause.CONFIG:
            assert delay is None
        elif cause is FailureCause.PASSING:
            assert delay is not None, "what passes is tried without end"
            assert 0.05 <= delay <= 10
        elif cause is FailureCause.FORBIDDEN:
            assert (delay is None) == (policy.attempts == 0), "a permission is waited for, unless nothing is"
            assert delay is None or policy.first_seconds / 2 <= delay <= policy.most_seconds
        elif delay is None:
            assert 0 <= policy.attempts <= own
        else:
            own += 1
            assert policy.first_seconds / 2 <= delay <= policy.most_seconds
    assert restarts.attempts == own
    assert policy.attempts < 0 or own <= policy.attempts
    _, delay = restarts.failed("TASK_FAILED", retriable=False, alone=False, healthy_seconds=policy.reset_seconds)
    assert (delay is None) == (policy.attempts == 0), "healthy for so long: the budget is whole"
    assert restarts.attempts == (0 if delay is None else 1)


def test_delays_grow() -> None:
    restarts = Restarts(RestartPolicy(first_seconds=1, most_seconds=60), random.random)
    delays = [restarts.failed("TASK_FAILED", retriable=False, alone=False, healthy_seconds=0)[1] for _ in range(9)]
    for n, delay in enumerate(delays):
        assert delay is not None
        whole = min(60, 2**n)
        assert whole / 2 <= delay <= whole


def test_a_permission_that_is_wanting_costs_nothing_and_is_seen() -> None:
    restarts, now = Restarts(RestartPolicy(attempts=1), random.random), datetime(2025, 1, 1, tzinfo=UTC)
    for _ in range(3):
        cause, delay = restarts.failed("NOT_ALLOWED", retriable=False, alone=False, healthy_seconds=0)
    assert (cause, restarts.attempts, restarts.unhealthy) == (FailureCause.FORBIDDEN, 0, True)
    told = Attempt.made("NOT_ALLOWED", restarts, delay, now)
    assert told.value() == {"reason": "NOT_ALLOWED", "attempt": 3, "next": told.next}
    assert told.explained("").startswith("Next automatic restart (3rd) at 2025-01-01T00:00:0")
    assert restarts.failed("TASK_FAILED", retriable=False, alone=False, healthy_seconds=0)[1] is not None


def test_one_crash_may_be_chance() -> None:
    def causes(alone: bool) -> list[FailureCause]:
        restarts = Restarts(RestartPolicy(attempts=0), random.random)
        return [restarts.failed("SLOT_LOST", retriable=True, alone=alone, healthy_seconds=0)[0] for _ in range(3)]

    assert causes(alone=True) == [FailureCause.PASSING, FailureCause.OWN, FailureCause.OWN]
    assert causes(alone=False) == [FailureCause.PASSING] * 3, "it may be another one's code"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConfigValueError("a", "b"), ("CONFIG_INVALID", False)),
        (ConnectError("no"), ("TASK_FAILED", False)),
        (RetriableConnectError("later"), ("TASK_FAILED", True)),
        (Unavailable("gone"), ("UNAVAILABLE", True)),
        (DeadlineExceeded("hangs", reason="PLUGIN_HUNG"), ("PLUGIN_HUNG", False)),
        (NotFound("what?", reason="CONNECTOR_CLASS_UNKNOWN"), ("CONNECTOR_CLASS_UNKNOWN", False)),
        (Unauthenticated("who?", reason="BROKER_REFUSED"), ("BROKER_REFUSED", False)),
        (KeyError("whim"), ("TASK_FAILED", False)),
    ],
)
def test_errors_before_there_is_a_copy_run(error: Exception, expected: tuple[str, bool]) -> None:
    assert reason_of(error) == expected


def test_what_a_status_says() -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC)
    trace = "java.lang.Sorry: why\n\tat somewhere\n"
    restarts = Restarts(RestartPolicy(attempts=2), random.random)
    restarts.failed("TASK_FAILED", retriable=False, alone=False, healthy_seconds=0)
    told = Attempt.made("TASK_FAILED", restarts, 7.0, now)
    assert told.explained(trace) == f"{trace}Next automatic restart (1st of 2) at 2025-01-01T00:00:07Z: TASK_FAILED\n"
    assert told.value() == {
        "reason": "TASK_FAILED",
        "attempt": 1,
        "max_attempts": 2,
        "next": "2025-01-01T00:00:07Z",
    }
    never = Attempt.made("TASK_FAILED", Restarts(RestartPolicy(attempts=0), random.random), None, now)
    assert never.explained(trace) == trace, "as in Connect"
    assert Attempt.made("CONFIG_INVALID", Restarts(RestartPolicy(), random.random), None, now).explained(trace) == trace


def test_a_policy_is_the_connectors_before_the_workers() -> None:
    worker = {"keelman.restart.max.attempts": "3", "keelman.restart.backoff.ms": "2000"}
    assert policy_of({}, {}) == RestartPolicy()
    assert policy_of({"keelman.restart.max.attempts": "0"}, worker) == RestartPolicy(0, 2.0)
    assert policy_of({"keelman.restart.backoff.max.ms": "1000"}, worker).most_seconds == 2.0
    with pytest.raises(
        InvalidArgument, match=r"-2 for configuration keelman\.restart\.max\.attempts: Value must be at least -1"
    ):
        policy_of({"keelman.restart.max.attempts": "-2"}, worker)


def test_ordinals() -> None:
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 21)] == ["1st", "2nd", "3rd", "4th", "11th", "21st"]
