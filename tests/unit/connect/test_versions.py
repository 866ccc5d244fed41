"""Versions and ranges of versions, as Connect takes them for plugins."""

import pytest

from keelman.connect.config.versions import VersionRangeError, ordered, requirement

VERSIONS = ["1.0", "1.2", "2.0-rc1", "2.0", "10.0"]


@pytest.mark.parametrize(
    ("expected", "shown", "latest"),
    [
        ("1.2", "[1.2,1.2]", "1.2"),
        ("[1.0,2.0)", "[1.0,2.0)", "2.0-rc1"),
        ("(,2.0)", "(,2.0)", "2.0-rc1"),
        ("[1.0,2.0]", "[1.0,2.0]", "2.0"),
        ("(2.0,)", "(2.0,)", "10.0"),
        ("[0.1,0.2],[1.2]", "[0.1,0.2],[1.2,1.2]", "1.2"),
        ("3", "[3,3]", None),
        ("1.0.0", "[1.0.0,1.0.0]", "1.0"),
        ("", "[,]", None),
    ],
)
def test_ranges(expected: str, shown: str, latest: str | None) -> None:
    actual_requirement = requirement(expected)
    assert (str(actual_requirement), actual_requirement and actual_requirement.latest(VERSIONS)) == (shown, latest)


def test_nothing_wanted() -> None:
    assert (requirement(None), requirement("latest")) == (None, None)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("[oops", "Unbounded range: [oops"),
        ("]4", "Only fully-qualified sets allowed in multiple set scenario: []4]"),
        ("(1.0)", "Single version must be surrounded by []: (1.0)"),
        ("[2,1]", "Range defies version ordering: [2,1]"),
        ("[1,1)", "Range defies version ordering: [1,1)"),
        ("[1,3],[2,4]", "Ranges overlap: [1,3],[2,4]"),
    ],
)
def test_what_is_no_range(expected: str, message: str) -> None:
    with pytest.raises(VersionRangeError) as caught:
        requirement(expected)
    assert str(caught.value) == message


def test_order() -> None:
    rising = ["1-alpha", "1-beta", "1-rc1", "1-rc2", "1-SNAPSHOT", "1", "1-acme", "1.0.1", "1.2", "1.10"]
    assert sorted(rising, key=ordered) == rising
    assert ordered("1.0") == ordered("1") == ordered("1.0.0.Final")
