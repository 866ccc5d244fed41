"""The offset at which a sink continues when its position in a log no longer exists."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from keelman.engine.failure import RunFailure
from keelman.engine.sink.positions.relocation import Found, Reset, goes_on_at


@pytest.mark.parametrize(
    ("due", "log", "expected"),
    [
        (5, Found(0, 100), 5),  # only records that were fetched ahead are lost
        (5, Found(0, 100, epoch_end=60), 5),
        (80, Found(0, 100, epoch_end=60), 60),  # records that were processed are lost, and the log has grown since
        (80, Found(0, 50, epoch_end=60), 60),
        (80, Found(0, 50, epoch_end=90), 80),  # a new leader's end, for a moment
        (80, Found(0, 50), None),
        (5, Found(10, 100), None),  # deleted by retention
        (5, Found(10, 100, epoch_end=60), None),
        (100, Found(0, 100), 100),
        (10, Found(10, 10), 10),
    ],
)
def test_where_it_goes_on(due: int, log: Found, expected: int | None) -> None:
    assert goes_on_at(due, log) == expected


@pytest.mark.parametrize(("policy", "expected"), [("earliest", OFFSET_BEGINNING), ("latest", OFFSET_END)])
def test_the_users_reset_is_kept_from_the_client(policy: str, expected: int) -> None:
    properties = {"auto.offset.reset": policy}
    assert Reset(properties).offset("t-0", "no offset") == expected
    assert properties == {"auto.offset.reset": "error"}


def test_none_fails_the_task() -> None:
    with pytest.raises(RunFailure, match=r"partition t-0: no offset, and auto.offset.reset is none") as failed:
        Reset({"auto.offset.reset": "error"}).offset("t-0", "no offset")
    assert not failed.value.retriable
