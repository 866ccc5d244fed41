"""A connector has no more tasks than `tasks.max`, unless that is not enforced."""

import pytest

from keelman.worker.task_count import TooManyTasksError, check_count


@pytest.mark.parametrize(
    ("config", "count"), [({}, 2), ({"tasks.max.enforce": "false"}, 3), ({"tasks.max.enforce": " FALSE "}, 9)]
)
def test_as_many_as_are_allowed(config: dict[str, str], count: int) -> None:
    check_count(config, count, 2)


def test_more_are_refused_as_connect_does() -> None:
    with pytest.raises(TooManyTasksError) as caught:
        check_count({"name": "c", "tasks.max.enforce": "true"}, 3, 2)
    assert caught.value.java_name == "org.apache.kafka.connect.runtime.TooManyTasksException"
    assert str(caught.value) == (
        "The connector c has generated 3 tasks, which is greater than 2, the maximum number of tasks it is configured "
        "to create. This behaviour should be considered a bug and is disallowed. If necessary, it can be permitted by "
        "reconfiguring the connector with 'tasks.max.enforce' set to false; however, this option will be removed in a "
        "future release of Kafka Connect."
    )
