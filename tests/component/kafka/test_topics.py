"""Topics that keelman creates itself: created once, refused with the brokers' own words."""

import pytest

from keelman.kafka import feed
from keelman.kafka.data_topics import create_topic, delete_topics
from keelman.model.errors import FailedPrecondition, Unavailable
from support.eventually import eventually

pytestmark = pytest.mark.component
WRONG = "no/such name"


async def test_a_topic_is_made_once_and_a_wrong_one_refused_in_the_brokers_words(bootstrap: str) -> None:
    properties = {"bootstrap.servers": bootstrap}
    settings = {"retention.ms": "7654321"}
    assert await create_topic(properties, "numbers", partitions=3, settings=settings) is True

    async def there() -> bool:
        """Once the broker that gets the request knows the topic."""
        try:
            return await create_topic(properties, "numbers", partitions=3) is False
        except FailedPrecondition as error:
            assert "has 0 partitions" in error.message  # noqa: PT017
            return False

    await eventually(there)
    with pytest.raises(FailedPrecondition, match="topic numbers has 3 partitions, needed are exactly 4"):
        await create_topic(properties, "numbers", partitions=4)
    with pytest.raises(FailedPrecondition, match=f"topic {WRONG} cannot be created: Topic name is invalid"):
        await create_topic(properties, WRONG, partitions=1)
    with pytest.raises(FailedPrecondition, match=r"topic x cannot be created: .*Invalid value never .*retention\.ms"):
        await create_topic(properties, "x", partitions=1, settings={"retention.ms": "never"})
    await delete_topics(properties, ["numbers", "nobodys"])


async def test_a_topic_of_facts_that_is_refused_says_why(bootstrap: str) -> None:
    with pytest.raises(Unavailable, match=f"topic {WRONG} could not be created on {bootstrap}: Topic name is invalid"):
        await feed.ensure_topics(bootstrap, [feed.WORKER_REPORTS, WRONG])
    await feed.ensure_topics(bootstrap, [feed.WORKER_REPORTS])
