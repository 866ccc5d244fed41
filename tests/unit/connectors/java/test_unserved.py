"""Java connectors that are refused by name, with the reason and the way out."""

from __future__ import annotations

from keelman.connect.plugin import Direction
from keelman.connectors.java.connector import JavaConnector
from keelman.connectors.java.unserved import why_unserved


class Iceberg(JavaConnector):
    names = ("Iceberg",)
    version = "1"
    direction = Direction.SINK
    java_name = "org.apache.iceberg.connect.IcebergSinkConnector"


def test_what_looks_inside_connect_is_refused_with_the_way_out() -> None:
    (problem,) = Iceberg.validate({"connector.class": Iceberg.java_name})
    assert problem.key == "connector.class"
    assert "private field consumer" in str(problem)
    assert "engine kafka-connect" in str(problem)


def test_others_may_be_tried() -> None:
    assert not why_unserved("org.apache.kafka.connect.file.FileStreamSinkConnector")
