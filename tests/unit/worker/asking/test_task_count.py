"""A connector has no more tasks than `tasks.max`, unless that is not enforced."""

from collections.abc import Mapping

import pytest

from keelman.connectors.file.source import FileStreamSource
from keelman.worker.asking.connector_class import TooManyTasksError, check_count, tasks_of


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


class Generous(FileStreamSource):
    """A connector that plans three tasks, whatever the maximum."""

    names = ("com.acme.GenerousConnector",)

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        return [{"number": str(number)} for number in range(3)]


def test_a_connector_that_plans_more_than_it_may_has_no_tasks_of_that_plan() -> None:
    """As when `tasks.max` was lowered: tasks of the former plan keep running, and the connector reports the error."""
    for most in ("1", "2"):
        with pytest.raises(TooManyTasksError, match=f"greater than {most}, the maximum"):
            tasks_of(Generous, {"name": "c", "tasks.max": most})
    assert len(tasks_of(Generous, {"tasks.max": "3"})) == len(
        tasks_of(Generous, {"tasks.max": "2", "tasks.max.enforce": "false"})
    )


def test_a_task_keeps_its_own_value_of_a_key_that_its_connector_has_too() -> None:
    class Numbered(Generous):
        """Gives each task its number, beside what completes its configuration."""

        @classmethod
        def completed(cls, config: Mapping[str, str], worker: Mapping[str, str]) -> Mapping[str, str]:
            """With a password of the worker's, and another address."""
            return {**config, "password": worker["password"], "address": "whole"}

        @classmethod
        def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
            """One for each task."""
            return [{**config, "number": str(task)} for task in range(max_tasks)]

    config = {"tasks.max": "2", "number": "none", "address": "short"}
    tasks = tasks_of(Numbered, config, {"password": "secret"})
    assert [task["number"] for task in tasks] == ["0", "1"]
    assert [task["address"] for task in tasks] == ["short", "short"]
    assert not [task for task in tasks if "password" in task]
