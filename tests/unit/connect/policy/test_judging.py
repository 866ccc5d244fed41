"""What policies allow and refuse in a connector's configuration, and what they say then."""

import os

import pytest

from keelman.connect.policy.judging import PolicyJudge, PolicyRefused
from keelman.connect.policy.policy import policies_of, with_data_folder
from keelman.connectors.registry import full_name
from keelman.model.errors import InvalidArgument

OWN, INSTALLATION = "keelman.policy.", "keelman.policy.installation."
SOURCE = {"connector.class": "FileStreamSource", "file": "/data/in.txt", "topic": "t"}
SPARK = {"connector.class": "SparkSource", "spark.format": "csv", "spark.path": "/data/rows", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "file": "/data/out.txt", "topics": "t"}


def refused(config: dict[str, str], *, prefix: str = OWN, **rules: str) -> dict[str, str]:
    worker = {prefix + rule.replace("_", "."): text for rule, text in rules.items()}
    return {error.key: error.message for error in PolicyJudge(worker, full_name).refusals(config)}


def test_without_a_policy_all_is_allowed_but_internal_topics() -> None:
    open_ones = {**SPARK, "spark.python.source": "evil:X", "spark.packages": "a:b:1", "spark.path": "/etc"}
    assert refused(open_ones) == {}
    assert refused({**SOURCE, "file": "relative", "producer.override.bootstrap.servers": "127.0.0.1:1"}) == {}


@pytest.mark.parametrize(
    "topic",
    [
        "demo.connect-configs",
        "connect-status",
        "keelman.events.node.v1",
        "keelman.reports.worker.v1",
        "__consumer_offsets",
        "keelman_connect_configs_x_1",
        "mine",
        "my-status",
        "other-offsets",
    ],
)
@pytest.mark.parametrize("key", ["topics", "topic", "errors.deadletterqueue.topic.name", "offsets.storage.topic"])
def test_internal_topics_are_refused_in_every_policy(key: str, topic: str) -> None:
    worker = {"config.storage.topic": "mine", "status.storage.topic": "my-status", f"{OWN}topics.denied": "other-*"}
    judge = PolicyJudge(worker, full_name)
    (error,) = judge.refusals({**SINK, key: f"good, {topic}"})
    assert error.key == key
    assert f"topic {topic} is internal" in error.message
    assert judge.refusals({**SINK, key: "good,configs,__debezium-heartbeat.db,mine2,my.connect-configs.copy"}) == []


def test_a_connector_may_name_its_worker_s_own_topic_for_its_offsets() -> None:
    judge = PolicyJudge({"offset.storage.topic": "mine", "status.storage.topic": "other"}, full_name)
    assert judge.refusals({**SOURCE, "offsets.storage.topic": "mine"}) == []
    assert judge.refusals({**SOURCE, "offsets.storage.topic": "other"}) != []
    assert judge.refusals({**SOURCE, "topic": "mine"}) != []


def test_a_path_outside_is_refused_with_what_is_legal_and_who_allows_it() -> None:
    (text,) = refused({**SOURCE, "file": "/home/state/secrets.key"}, paths_allowed="/data,/srv/in").values()
    assert text == (
        "Invalid value /home/state/secrets.key for configuration file: /home/state/secrets.key is outside of what "
        "connectors may name: legal are files below /data, files below /srv/in (an administrator allows it by "
        "keelman.policy.paths.allowed)"
    )
    assert refused(SOURCE, paths_allowed="/data") == {}
    assert "legal are no files" in refused(SOURCE, paths_allowed="")["file"]


@pytest.mark.parametrize(
    "path",
    [
        "/data/../etc/passwd",
        "/database",
        "data/x",
        "~/x",
        "/data/{a,../../etc}/x",
        "{/data/x,/etc/passwd}",
        "/dat*/x",
        "/*/x",
        "file:/etc/passwd",
        "FILE:///etc/passwd",
        "file:///data/%2e%2e/etc/passwd",
        "file://elsewhere/data/x",
        "/data/x,/etc/passwd",
        "hdfs:///data/x",
        "viewfs:/data/x",
        r"/data/\.\./etc",
        "/data/{./x,.}{.}/etc",
    ],
)
def test_a_data_set_outside_is_refused_however_it_is_written(path: str) -> None:
    assert list(refused({**SPARK, "spark.path": path}, paths_allowed="/data")) == ["spark.path"]


@pytest.mark.parametrize("path", ["/data", "/data/x", "/data/{a,b}/*.csv", "file:/data/x", "s3a://bucket/x"])
def test_a_data_set_inside_is_allowed(path: str) -> None:
    assert refused({**SPARK, "spark.path": path}, paths_allowed="/data") == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.option.path", "rows"),
        ("spark.option.BasePath", "/etc"),
        ("consumer.override.ssl.truststore.location", "/etc/store"),
        ("schema.history.internal.file.filename", "/etc/history"),
        ("input.path", "/data/../etc"),
        ("finishedFolder", "/etc"),
        ("connection.url", "jdbc:sqlite:/etc/x.db"),
        ("connection.url", "jdbc:h2:/etc/x"),
        ("anything", "file:///etc/passwd"),
    ],
)
def test_keys_of_other_connectors_that_name_files_are_judged(key: str, value: str) -> None:
    config = {"connector.class": "io.acme.Source", key: value}
    assert list(refused(config, paths_allowed="/data")) == [key]
    assert refused(config) == {}


@pytest.mark.parametrize(
    "config",
    [
        {"spark.python.source": "evil:X"},
        {"spark.packages": "org.acme:evil:1"},
        {"spark.format": "org.acme.Evil"},
        {"spark.conf.spark.jars": "/data/evil.jar"},
        {"spark.conf.spark.sql.catalog.x": "org.acme.Evil"},
        {"spark.conf.spark.sql.extensions": "org.acme.Evil"},
        {"spark.conf.spark.hadoop.fs.defaultFS": "x"},
        {"spark.option.fs.file.impl": "org.acme.Evil"},
        {"spark.option.parquet.crypto.factory.class": "org.acme.Evil"},
        {"spark.option.driver": "org.acme.Evil"},
    ],
)
def test_code_by_name_is_refused_where_it_is_denied(config: dict[str, str]) -> None:
    (key,) = config
    texts = refused({**SPARK, **config}, code_by_name="denied")
    assert list(texts) == [key]
    assert "(an administrator allows it by keelman.policy.code.by.name=allowed)" in texts[key]
    legal = {"spark.option.header": "true", "spark.conf.spark.sql.files.maxPartitionBytes": "1m"}
    assert refused({**SPARK, **legal}, code_by_name="denied") == {}


def test_classes_are_judged_by_all_their_names() -> None:
    name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    for written in (name, "FileStreamSource", "FileStreamSourceConnector"):
        config = {**SOURCE, "connector.class": written}
        for pattern in (name, "FileStreamSource", "org.apache.kafka.connect.file.*", "*Source"):
            assert refused(config, classes_allowed=pattern) == {}
            assert list(refused(config, classes_denied=pattern)) == ["connector.class"]
        assert "legal are io.debezium.*" in refused(config, classes_allowed="io.debezium.*")["connector.class"]
    steps = {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.HoistField$Value"}
    assert list(refused({**SOURCE, **steps}, classes_denied="*.HoistField*")) == ["transforms.a.type"]
    assert refused({**SOURCE, **steps}, classes_allowed="FileStream*") == {}


def test_overrides_and_hosts_are_judged_by_patterns() -> None:
    config = {
        **SINK,
        "consumer.override.bootstrap.servers": "b1:9092,127.0.0.1:22",
        "consumer.override.fetch.min.bytes": "1",
    }
    key = "consumer.override.bootstrap.servers"
    assert list(refused(config, overrides_allowed="fetch.*")) == [key]
    assert "127.0.0.1:22" in refused(config, hosts_allowed="b1:9092")[key]
    assert refused(config, hosts_allowed="b*:9092,127.0.0.1") == {}
    assert list(refused(config, hosts_denied="127.*")) == [key]
    for url in ("jdbc:postgresql://u:p@127.0.0.1:22/x", "mongodb://u:p@good,127.0.0.1:22/x", "http://127.0.0.1:22"):
        texts = refused({"connector.class": "io.acme.Source", "connection.url": url}, hosts_denied="127.*")
        assert "127.0.0.1:22" in texts["connection.url"]
        assert "u:p@" not in texts["connection.url"]


def test_the_installation_and_the_cluster_both_have_to_allow() -> None:
    worker = {f"{INSTALLATION}paths.allowed": "/data", f"{OWN}paths.allowed": "*"}
    (error,) = PolicyJudge(worker, full_name).refusals({**SOURCE, "file": "/etc/passwd"})
    assert f"{INSTALLATION}paths.allowed" in error.message
    worker = {f"{INSTALLATION}paths.allowed": "/data", f"{OWN}paths.allowed": "/data/mine"}
    assert [error.key for error in PolicyJudge(worker, full_name).refusals(SOURCE)] == ["file"]


def test_a_refusal_at_run_has_all_texts() -> None:
    judge = PolicyJudge({f"{OWN}code.by.name": "denied", f"{OWN}paths.allowed": ""}, full_name)
    with pytest.raises(PolicyRefused) as raised:
        judge.require({**SPARK, "spark.python.source": "evil:X"})
    assert "for configuration spark.path: " in str(raised.value)
    assert "for configuration spark.python.source: " in str(raised.value)
    judge.require(SINK | {"file": ""})


@pytest.mark.parametrize(
    ("key", "value", "legal"),
    [
        (f"{OWN}path.allowed", "/data", "keelman.policy.paths.allowed"),
        (f"{INSTALLATION}code", "denied", "keelman.policy.installation.code.by.name"),
        (f"{OWN}paths.allowed", "relative", "absolute paths"),
        (f"{OWN}code.by.name", "no", "allowed or denied"),
    ],
)
def test_a_slip_in_a_policy_is_an_error(key: str, value: str, legal: str) -> None:
    with pytest.raises(InvalidArgument, match=key) as raised:
        policies_of({key: value})
    assert legal in raised.value.message


def test_the_data_folder_stands_for_the_cluster_s_own() -> None:
    worker = {f"{INSTALLATION}paths.allowed": "data,/srv", "group.id": "data"}
    placed = with_data_folder(worker, "/home/data/demo")
    assert placed == {f"{INSTALLATION}paths.allowed": "/home/data/demo,/srv", "group.id": "data"}
    assert PolicyJudge(placed, full_name).refusals({**SOURCE, "file": "/home/data/demo/x"}) == []
    nowhere = PolicyJudge(with_data_folder(worker, ""), full_name)
    for path in ("data/x", f"{os.getcwd()}/data/x"):
        assert [error.key for error in nowhere.refusals({**SOURCE, "file": path})] == ["file"]
