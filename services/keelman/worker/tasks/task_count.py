"""How many tasks a connector may give itself: `tasks.max`, which `tasks.max.enforce=false` makes a wish."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.definition import Type, parse_type
from keelman.connect.errors import ConnectError
from keelman.runtime.logging import get_logger

ENFORCE = "tasks.max.enforce"

log = get_logger()


class TooManyTasksError(ConnectError):
    """More tasks than the connector's configuration allows."""

    java_name = "org.apache.kafka.connect.runtime.TooManyTasksException"


def check_count(config: Mapping[str, str], count: int, most: int) -> None:
    """Raises TooManyTasksError with Connect's text, or only logs it where the number is not enforced."""
    if count <= most:
        return
    name = config.get("name", "")
    text = (
        f"The connector {name} has generated {count} tasks, which is greater than {most}, the maximum number of tasks "
        "it is configured to create."
    )
    if not parse_type(ENFORCE, config.get(ENFORCE, "true"), Type.BOOLEAN):
        log.warning("too_many_tasks", connector=name, error=text)
        return
    raise TooManyTasksError(
        f"{text} This behaviour should be considered a bug and is disallowed. If necessary, it can be permitted by "
        f"reconfiguring the connector with '{ENFORCE}' set to false; however, this option will be removed in a future "
        "release of Kafka Connect."
    )
