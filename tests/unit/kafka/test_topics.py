"""Which partition has the records of a group, as Java computes it; and which topics are fit for a worker's records."""

from types import SimpleNamespace
from typing import Any

import pytest

from keelman.kafka.topics import CompactedTopic, ensure_topics, topic_problem
from keelman.model.errors import FailedPrecondition
from support.brokers.cluster_parts import coordinating


@pytest.mark.parametrize(
    ("name", "partitions", "expected"),
    [
        ("", 3, 0),
        ("hello", 50, 22),  # hashCode 99162322
        ("Hello, World!", 50, 9),  # 1498789909, more than 32 bits before truncation
        ("polygenelubricants", 50, 0),  # the least integer, which has no absolute value
    ],
)
def test_a_name_has_the_partition_that_kafka_gives_it(name: str, partitions: int, expected: int) -> None:
    assert coordinating(name, partitions) == expected


class Brokers:
    """Brokers with one topic of one partition and this cleanup policy; None if the client may not see the policy."""

    def __init__(self, policy: str | None) -> None:
        self._policy = policy

    async def describe_topics(self, _names: list[str]) -> list[dict[str, Any]]:
        return [{"error_code": 0, "partitions": [0]}]

    async def describe_configs(self, _resources: list[Any]) -> list[Any]:
        entries = [("cleanup.policy", self._policy)]
        code = 29 if self._policy is None else 0  # TOPIC_AUTHORIZATION_FAILED
        return [SimpleNamespace(resources=[(code, "", 2, "offsets", entries)])]


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
async def test_a_topic_that_would_lose_records_is_refused(policy: str) -> None:
    admin: Any = Brokers(policy)
    compacted_topic = CompactedTopic("offsets", 25, setting_key="offset.storage.topic")
    problem = f"offset.storage.topic: topic offsets has cleanup.policy={policy}, needed is cleanup.policy=compact"
    assert await topic_problem(admin, compacted_topic) == problem
    with pytest.raises(FailedPrecondition) as raised:
        await ensure_topics(admin, [compacted_topic])
    assert (raised.value.message, raised.value.reason) == (problem, "WRONG_TOPIC")


@pytest.mark.parametrize("policy", ["compact", None])
async def test_a_topic_that_keeps_them_is_taken_and_so_is_one_that_may_not_be_looked_at(policy: str | None) -> None:
    admin: Any = Brokers(policy)
    compacted_topic = CompactedTopic("offsets", 25)
    assert await topic_problem(admin, compacted_topic) == ""
    assert await ensure_topics(admin, [compacted_topic]) == [1]
    exact = CompactedTopic("offsets", 25, exact=True)
    assert "has 1 partitions, needed are exactly 25" in await topic_problem(admin, exact)
