"""The arguments of `keelman worker`: files, short flags, and errors in them."""

from typing import Any

import pytest

from keelman.worker import main as worker_main
from keelman.worker import short_flags
from keelman.worker.config.typed import checked

DOCUMENTED = "-brokers b1:9092,b2:9092 -group g -cluster c -registry http://r:8081 -offsets o -configs k -port 8084"

LEAST = ("--brokers=b:1", "-group", "g", "-offsets", "o", "-configs", "k")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of the workers that would have run."""
    results: list[dict[str, Any]] = []

    def take(program: Any, flags: dict[str, Any], **others: Any) -> int:
        results.append({key: value for key, value in flags.items() if value is not None})
        return 0

    monkeypatch.setattr("keelman.runtime.main.run_service", take)
    monkeypatch.setattr(short_flags, "run_service", take)
    return results


@pytest.mark.parametrize(
    "words", [DOCUMENTED, DOCUMENTED.replace(" -", " --"), DOCUMENTED.replace("-port 8084", "-port=8084")]
)
def test_short_flags_are_worker_properties(words: str, started: list[dict[str, Any]]) -> None:
    assert worker_main.main(words.split()) == 0
    (answer,) = started
    assert (answer["worker_cluster"], answer["post_config"]) == ("c", True)
    properties = checked(answer["properties"])
    assert properties.group_id == "g"
    assert properties.raw["bootstrap.servers"] == "b1:9092,b2:9092"
    topics = (properties.offset_topic, properties.config_topic, properties.status_topic)
    assert [topic.name for topic in topics] == ["o", "k", "g-status"]
    assert properties.listeners.main[0].port == 8084
    assert properties.raw["value.converter"] == "io.confluent.connect.avro.AvroConverter"
    assert properties.raw["key.converter.schema.registry.url"] == "http://r:8081"


def test_what_may_be_left_out_has_its_default(started: list[dict[str, Any]]) -> None:
    assert worker_main.main([*LEAST, "--spark-address", "s:1"]) == 0
    (answer,) = started
    assert "worker_cluster" not in answer, "the group's name is used"
    assert answer["spark_address"] == "s:1"
    assert checked(answer["properties"]).listeners.main[0].port == 8083
    assert not [key for key in answer["properties"] if "registry" in key]
    assert answer["properties"]["key.converter"] == "org.apache.kafka.connect.json.JsonConverter"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-brokers b:1", "-group, -offsets, -configs must be given"),
        ("-brokers b -group g -offsets o -configs k", "-brokers: 'b' is not legal: host:port"),
        ("-brokers b:1, -group g -offsets o -configs k", "-brokers: '' is not legal"),
        ("-brokers b:1 -group g -offsets o -configs o", "two topics"),
        ("-brokers b:1 -group g -offsets g-status -configs o", "two topics"),
        ("-brokers b:1 -group g -offsets a/b -configs k", "-offsets: 'a/b' is not legal: a topic name"),
        ("-brokers b:1 -group g -offsets o -configs k -port 0", "-port: '0' is not legal: a number from 1 to 65535"),
        ("-brokers b:1 -group g -offsets o -configs k -port", "expected one argument"),
        ("-brokers b:1 -group g -offsets o -configs k -registry r", "-registry: 'r' is not legal: a URL"),
        ("-brokers b:1 -group g -offsets o -configs k -topic t", "unrecognized arguments: -topic t"),
        (
            "-brokers b:1 -group g -offsets o -configs k --properties-file w",
            "unrecognized arguments: --properties-file w",
        ),
        ("-brokers b:1 -port x", "-group, -offsets, -configs must be given; -port: 'x' is not legal"),
    ],
)
def test_wrong_flags_are_told_with_the_usage(
    words: str, message: str, started: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        worker_main.main(words.split())
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert message in output
    assert "usage: keelman worker -brokers HOST:PORT" in output
    assert not started


def test_files_stand_where_connect_has_them(started: list[dict[str, Any]]) -> None:
    assert worker_main.main(["run", "w.properties", "--spark-address", "s:1"]) == 0
    assert worker_main.main(["run", "--spark-address=s:1", "w.properties"]) == 0
    assert worker_main.main(["run", "--properties-file", "w.properties", "--spark-address", "s:1"]) == 0
    same = {"properties_file": "w.properties", "spark_address": "s:1"}
    assert [{k: str(v) for k, v in entry.items()} for entry in started] == [same] * 3
    started.clear()
    assert worker_main.main(["standalone", "w.properties", "a.properties", "b.json", "--spark-address=s:1"]) == 0
    assert worker_main.main(["standalone", "w.properties"]) == 0
    assert [start.get("connector_files") for start in started] == [["a.properties", "b.json"], None]
    assert all(entry["standalone"] for entry in started)


def test_a_worker_of_a_group_takes_no_files_of_connectors(
    started: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert worker_main.main(["run", "w.properties", "c.properties"]) == 2
    assert "keelman worker standalone" in capsys.readouterr().err
    assert worker_main.main(["run", "--sparc-address", "s:1"]) == 2
    assert "did you mean 'spark_address'?" in capsys.readouterr().err
    assert not started
