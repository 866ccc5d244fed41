"""Labels: their syntax, refusals, and the message when no worker has them."""

import pytest

from keelman.model.errors import InvalidArgument
from keelman.model.rules.labels import labels_of
from keelman.worker.group.placement import NOBODY, wants_of, why_none_fit, why_unplaced


def test_labels_are_read() -> None:
    assert labels_of(" zone = a, disk=ssd ,zone=a,", key="k") == {"zone": "a", "disk": "ssd"}
    assert labels_of("", key="k") == {}


@pytest.mark.parametrize("text", ["zone", "=a", "zone=", "zone=a b", "zone=ü", "zone=a,zone=b", "z" * 64 + "=a"])
def test_what_is_none_is_refused_by_key(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^keelman\.labels: "):
        labels_of(text, key="keelman.labels")


def test_a_stored_text_that_is_not_legal_matches_nobody() -> None:
    assert wants_of({"a": "zone=a", "b": "zone", "c": " "}) == {"a": {"zone": "a"}, "b": NOBODY}
    assert "'zone' is not legal" in why_unplaced("zone", [{}])


def test_people_are_told_what_there_is() -> None:
    reason = why_unplaced("zone=b", [{"zone": "a", "disk": "ssd"}, {}, {"disk": "ssd", "zone": "a"}])
    assert "is zone=b, the workers' labels are disk=ssd,zone=a; none: set keelman.labels" in reason


def test_people_are_told_why_none_runs_tasks() -> None:
    reason = why_none_fit({"b:1": "no Spark service", "a:1": "nor here"})
    assert reason == "No worker of the group can run it now: a:1: nor here; b:1: no Spark service"
    assert why_none_fit({f"w{n}:1": "x" for n in range(100)}).endswith("w11:1: x; and 97 more")
