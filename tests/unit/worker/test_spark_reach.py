"""When a worker's agent learns that the worker's Spark service is unreachable."""

from __future__ import annotations

from keelman.model.workload import SPARK_UNREACHABLE
from keelman.worker.intervals import SPARK_AWAY_SECONDS
from keelman.worker.spark_reach import START_SECONDS, SparkReach


async def test_one_that_starts_is_given_its_time_and_one_that_was_there_less() -> None:
    now, reason = 1000.0, "not there yet"
    reach = SparkReach(lambda: reason, lambda: now)
    now += START_SECONDS - 1
    assert await reach.problem() is None, "it may still be starting"
    now += 1
    note = await reach.problem()
    assert note is not None
    assert (note.reason, note.message) == (SPARK_UNREACHABLE, "not there yet")
    reason = "not there, for another reason"
    assert await reach.problem() == note, "that is no news"
    reason = ""
    assert await reach.problem() is None
    reason = "gone"
    now += SPARK_AWAY_SECONDS - 1
    assert await reach.problem() is None, "it may be restarting"
    now += 1
    note = await reach.problem()
    assert note is not None
    assert note.message == "gone"
