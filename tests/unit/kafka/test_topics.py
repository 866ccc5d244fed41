"""Which partition has the records of a group, as Java counts it."""

import pytest

from keelman.testing.brokers.cluster_parts import coordinating


@pytest.mark.parametrize(
    ("name", "partitions", "expected"),
    [
        ("", 3, 0),
        ("hello", 50, 22),  # hashCode 99162322
        ("Hello, World!", 50, 9),  # 1498789909, more than 32 bits before it is cut
        ("polygenelubricants", 50, 0),  # the least there is, which has no absolute value
    ],
)
def test_a_name_has_the_partition_that_kafka_gives_it(name: str, partitions: int, expected: int) -> None:
    assert coordinating(name, partitions) == expected
