"""The worker's properties: their values, and one clear message for each error."""

import re
from pathlib import Path

import pytest
import structlog

from keelman.model.errors import InvalidArgument
from keelman.worker.config.source import PropertySource
from keelman.worker.config.typed import checked, read_properties
from keelman.worker.starting import log_notes
from keelman.workers.properties.known_properties import ignored, near, unknown
from support.places import ROOT
from support.worker.refused_properties import ILLEGAL
from support.worker_properties import OF_A_GROUP

PLAIN = {"bootstrap.servers", "key.converter", "value.converter"}


def test_what_is_not_set_has_its_default() -> None:
    properties = checked(OF_A_GROUP)
    assert (properties.session_ms, properties.heartbeat_ms, properties.rebalance_ms, properties.rebalance_delay_ms) == (
        6000,
        1000,
        60000,
        3000,
    )
    assert properties.exactly_once_sources
    assert properties.fenced
    assert [(t.partitions, t.replication_factor) for t in (properties.config_topic, properties.offset_topic)] == [
        (1, None),
        (25, None),
    ]
    assert properties.listeners.main[0].port == 8083


def test_topics_may_be_made_as_the_brokers_make_them() -> None:
    properties = checked({**OF_A_GROUP, "offset.storage.partitions": "-1", "offset.storage.replication.factor": "-1"})
    assert (properties.offset_topic.partitions, properties.offset_topic.replication_factor) == (-1, -1)


def test_a_slip_in_a_key_of_ours_is_told_with_the_nearest_and_those_on_the_page_of_workers_are_known() -> None:
    page = (ROOT / "docs" / "workers.md").read_text()
    documented = set(re.findall(r"`(keelman\.[a-z.]+[a-z])`", page))
    assert "keelman.cpus" in documented
    assert unknown(dict.fromkeys(documented - {"keelman.placement.labels"}, "")) == []  # a key of connectors
    slips = ["keelman.commit.interval", "keelman.cpu", "keelman.zzz"]
    assert unknown({**OF_A_GROUP, **dict.fromkeys(slips, "1")}) == slips
    assert [near(slip) for slip in slips] == [
        "keelman.commit.interval (keelman.commit.interval.ms?)",
        "keelman.cpu (keelman.cpus?)",
        "keelman.zzz",
    ]


def test_a_slip_behind_a_prefix_is_told_where_a_usual_key_is_meant() -> None:
    slips = ["bootstrap.server", "offset.storage.topik", "producer.lingr.ms", "value.convertr"]
    fields = {**OF_A_GROUP, **dict.fromkeys(slips, "x"), "producer.acme.interceptor": "x", "ssl.own": "x"}
    assert [near(unknown_key) for unknown_key in unknown(fields)] == [
        "bootstrap.server (bootstrap.servers?)",
        "offset.storage.topik (offset.storage.topic?)",
        "producer.lingr.ms (producer.linger.ms?)",
        "value.convertr (value.converter?)",
    ]


@pytest.mark.parametrize("key", sorted(OF_A_GROUP))
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{key} is missing"):
        checked({k: v for k, v in OF_A_GROUP.items() if k != key})


@pytest.mark.parametrize(("key", "value", "legal"), ILLEGAL)
def test_an_illegal_value_is_named_with_what_is_legal(key: str, value: str, legal: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        checked({**OF_A_GROUP, key: value})
    assert key in caught.value.message
    assert value in caught.value.message
    assert legal in caught.value.message


def test_topic_settings_reach_the_topic() -> None:
    properties = checked(
        {**OF_A_GROUP, "offset.storage.segment.bytes": "1048576", "offset.storage.cleanup.policy": "delete"}
    )
    assert properties.offset_topic.settings == {"segment.bytes": "1048576"}


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text(
        "# a comment\n" + "\n".join(f"{k} = {v}" for k, v in OF_A_GROUP.items()) + "\nlisteners=http\\://a\\:1\n"
    )
    properties = read_properties(PropertySource.read(file, {}))
    assert properties.listeners.main[0].port == 1
    assert properties.group_id == "g"


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb\xbf# a comment\r\n", b""])
def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path, mark: bytes) -> None:
    file = tmp_path / "worker.properties"
    lines = [f"{key}={value}" for key, value in OF_A_GROUP.items()]
    file.write_bytes(mark + "\r\n".join([*lines, "client.id=caf\\u00e9 \t"]).encode())
    assert read_properties(PropertySource.read(file, {})).raw == {**OF_A_GROUP, "client.id": "caf\u00e9"}


def test_what_is_no_file_of_properties_is_told(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("group.id=g", encoding="utf-16")
    with pytest.raises(InvalidArgument, match=r"worker\.properties: it is not a \.properties file: .* NUL bytes"):
        read_properties(PropertySource.read(file, {}))
    file.write_text("plugin.path=C:\\users")
    with pytest.raises(InvalidArgument, match=r"not a \.properties file: Invalid .*users"):
        read_properties(PropertySource.read(file, {}))


@pytest.mark.parametrize(("host", "advertised"), [("::1", "[::1]:1"), ("[::1]", "[::1]:1"), ("a.b", "a.b:1")])
def test_the_host_that_others_are_told(host: str, advertised: str) -> None:
    properties = checked({**OF_A_GROUP, "rest.advertised.host.name": host, "rest.advertised.port": "1"})
    assert properties.listeners.url({}) == f"http://{advertised}/"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"none.properties: it cannot be read: No such file"):
        PropertySource.read(tmp_path / "none.properties", {})


def test_where_plugins_are() -> None:
    assert checked(OF_A_GROUP).plugin_path == ""
    assert checked({**OF_A_GROUP, "plugin.path": "/a,/b"}).plugin_path == "/a,/b"


def test_all_that_is_wrong_is_told_at_once() -> None:
    bad = {**OF_A_GROUP, "group.id": "", "session.timeout.ms": "soon", "listeners": "ftp://h:1", "keelman.cpus": "none"}
    with pytest.raises(InvalidArgument) as caught:
        checked(bad)
    message = caught.value.message
    assert message.startswith("4 things are wrong: group.id is missing")
    assert all(key in message for key in ("session.timeout.ms: 'soon'", "listeners: 'ftp://h:1'", "keelman.cpus"))


def test_what_is_given_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in OF_A_GROUP.items()))
    assert read_properties(PropertySource.read(file, {"group.id": "other"})).group_id == "other"


def test_a_standalone_worker_needs_a_file_for_offsets_and_no_group() -> None:
    plain = {k: OF_A_GROUP[k] for k in ("bootstrap.servers", "key.converter", "value.converter")}
    with pytest.raises(InvalidArgument, match=r"^offset\.storage\.file\.filename is missing"):
        checked(plain, standalone=True)
    properties = checked(
        {**plain, "offset.storage.file.filename": "/tmp/o", "offset.flush.interval.ms": "7"}, standalone=True
    )
    assert (properties.offset_file, properties.offset_flush_ms, properties.standalone) == (Path("/tmp/o"), 7, True)
    assert not properties.exactly_once_sources
    assert properties.raw["exactly.once.source.support"] == "disabled", "also for those that read it there"
    assert properties.offset_topic.name == ""


def test_what_nothing_reads_is_told_and_what_is_ignored_has_a_reason() -> None:
    fields = {
        **OF_A_GROUP,
        "group.di": "x",
        "connect.protocol": "eager",
        "plugin.discovery": "only_scan",
        "metric.reporters": "",
    }
    fields |= {"offset.storage.segment.bytes": "1", "consumer.max.poll.records": "5", "retries": "3", "ssl.own": "x"}
    fields |= {"connector.client.config.override.policy": "Allowlist"}
    old = {"rest.port": "1", "rest.host.name": "h", "internal.key.converter.schemas.enable": "false"}
    fields |= {"connector.client.config.override.allowlist": "acks"}
    assert unknown(fields) == ["group.di"]
    assert sorted(ignored(fields, standalone=False)) == [
        "connect.protocol",
        "metric.reporters",
        "plugin.discovery",
        "retries",
    ]
    assert list(ignored(OF_A_GROUP, standalone=True)) == sorted(OF_A_GROUP.keys() - PLAIN)
    assert (unknown(old), list(ignored(old, standalone=False))) == ([], sorted(old))
    assert ignored(old, standalone=True)["rest.port"] == "as in Connect since 3.0: set listeners"


def test_providers_are_checked_although_nothing_refers_to_them() -> None:
    fields = {**OF_A_GROUP, "config.providers": "k", "config.providers.k.class": "io.x.SecretProvider"}
    with pytest.raises(
        InvalidArgument, match=r"io\.x\.SecretProvider for configuration config\.providers\.k\.class: .*Env"
    ):
        checked(fields)


def test_references_without_a_value_are_told() -> None:
    fields = {**OF_A_GROUP, "group.id": "${env:KEELMAN_TEST_NO_SUCH}", "plugin.path": "$a"}
    with structlog.testing.capture_logs() as logged:
        log_notes(checked(fields).raw, standalone=False)
    assert [(entry["event"], entry["keys"]) for entry in logged] == [("worker_properties_unresolved", "group.id")]


def test_token_endpoints_that_java_may_ask_are_ours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    url, key = "https://java.example/token", "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    oauth = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": url,
    }
    with pytest.raises(InvalidArgument, match="The URL cannot be accessed"):
        checked(OF_A_GROUP | oauth)
    monkeypatch.setenv("KAFKA_OPTS", f"-Dother=1 '-D{key}={url},https://b.example'")
    properties = checked(OF_A_GROUP | oauth)
    assert properties.raw["keelman.oauthbearer.allowed.urls"] == f"{url},https://b.example"
    with pytest.raises(InvalidArgument, match="The URL cannot be accessed"):
        checked(OF_A_GROUP | oauth | {"keelman.oauthbearer.allowed.urls": "https://b.example"})
