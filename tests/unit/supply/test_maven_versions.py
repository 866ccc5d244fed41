"""Versions of Maven in the order that Maven's documentation of version order gives."""

from itertools import pairwise

import pytest
from tools.supply.maven_versions import maven_order

ASCENDING = (
    ["1.0-alpha-1", "1.0-beta-1", "1.0-milestone-1", "1.0-rc-1", "1.0-SNAPSHOT", "1.0", "1.0-sp-1", "1.0.1", "1.1"],
    ["2.12.7", "2.12.7.1", "2.13.0", "2.13.4", "2.13.4.2", "2.21", "2.21.2"],
    ["4.1.9.Final", "4.1.118.Final", "4.2.0.Alpha1", "4.2.0.RC1", "4.2.0.Final", "4.2.13.Final"],
    ["1.1.10.7", "1.1.10.8", "1.1.11"],
)


@pytest.mark.parametrize("versions", ASCENDING, ids=lambda versions: versions[0])
def test_versions_ascend(versions: list[str]) -> None:
    for older, newer in pairwise(versions):
        assert (maven_order(older, newer), maven_order(newer, older)) == (-1, 1), (older, newer)


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "1.0.0"), ("1.0", "1.0.Final"), ("1-ga", "1"), ("1.0-cr2", "1.0-RC2"), ("1-a1", "1-alpha-1")],
)
def test_versions_are_equal(first: str, second: str) -> None:
    assert maven_order(first, second) == 0
