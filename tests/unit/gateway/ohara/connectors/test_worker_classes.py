"""The worker class that a connector names."""

import pytest

from keelman.gateway.ohara.connectors.worker_classes import named

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
LISTED = [
    {"class": FILE, "type": "source", "version": "2"},
    {"class": FILE, "type": "source", "version": "1"},
    {"class": "a.Twice", "type": "sink"},
    {"class": "b.Twice", "type": "source"},
    {"class": "a.Mask", "type": "transformation"},
]


@pytest.mark.parametrize("name", [FILE, "FileStreamSourceConnector", "FileStreamSource"])
def test_a_class_has_short_names_as_in_connect(name: str) -> None:
    assert named(LISTED, name) == LISTED[0]


@pytest.mark.parametrize("name", ["FileStream", "Twice", "Mask", "a.Mask", ""])
def test_a_name_of_none_or_of_several_tells_no_class(name: str) -> None:
    assert named(LISTED, name) is None


def test_a_full_name_is_plain_where_a_short_one_is_not() -> None:
    assert named(LISTED, "b.Twice") == LISTED[3]
