"""A broker's pure parts: its properties, the owner of a data folder, its command line, the reason of its end."""

import re
from pathlib import Path

import pytest

from keelman.broker.formatting import format_storage
from keelman.broker.jvm import BrokerFiles, broker_command, class_path, reason_in
from keelman.broker.old_self import controller_properties
from keelman.broker.properties import server_properties, written
from keelman.broker.settings import Settings
from keelman.broker.storage import FolderOwner, check_cluster_id, ensure_format, owner_of, write_format
from keelman.model.cluster import new_cluster_id
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.java.installation import Java
from keelman.runtime.settings import load

HOME = Path("/srv/broker")
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


def properties(**fields: object) -> dict[str, str]:
    return server_properties(load(Settings, "broker", flags={"home": HOME, **fields}).settings)


def test_a_broker_alone_listens_on_loopback_and_is_its_own_controller() -> None:
    actual_properties = properties(port=9192, controller_port=9193)
    assert actual_properties["process.roles"] == "broker,controller"
    assert actual_properties["listeners"] == "PLAINTEXT://127.0.0.1:9192,CONTROLLER://127.0.0.1:9193"
    assert actual_properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9192"
    assert actual_properties["controller.quorum.voters"] == "1@127.0.0.1:9193"
    assert actual_properties["log.dirs"] == "/srv/broker/data"
    assert actual_properties["group.initial.rebalance.delay.ms"] == "0"
    assert actual_properties["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_internal_topics_have_up_to_three_replicas(brokers: int, replicas: str, in_sync: str) -> None:
    voters = tuple(f"{n}@host{n}:9093" for n in range(1, brokers + 1))
    actual_properties = properties(voters=voters)
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert actual_properties[f"{topic}.replication.factor"] == replicas
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        assert actual_properties[f"{topic}.min.isr"] == in_sync
    assert actual_properties["controller.quorum.voters"] == ",".join(voters)


def test_a_broker_only_knows_the_controllers_and_listens_for_clients_alone() -> None:
    actual_properties = properties(
        node_id=4, controller=False, voters=["1@a:9093", "2@b:9093", "3@c:9093"], replicas=3, port=9093
    )
    assert actual_properties["process.roles"] == "broker"
    assert actual_properties["listeners"] == "PLAINTEXT://127.0.0.1:9093"
    assert actual_properties["controller.quorum.voters"] == "1@a:9093,2@b:9093,3@c:9093"
    assert actual_properties["controller.listener.names"] == "CONTROLLER"
    assert actual_properties["default.replication.factor"] == "3"


def test_the_only_controller_of_several_brokers_is_not_alone() -> None:
    alone, one_of_two = properties(), properties(replicas=2)
    for key in ("broker.session.timeout.ms", "controlled.shutdown.enable", "offsets.topic.replication.factor"):
        assert alone[key] != one_of_two[key]
    assert one_of_two["controller.quorum.voters"] == alone["controller.quorum.voters"]
    assert one_of_two["min.insync.replicas"] == "1"


def test_extra_properties_win_over_ours() -> None:
    assert properties(properties={"auto.create.topics.enable": "true", "x": "y"})["auto.create.topics.enable"] == "true"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"properties": {"node.id": "7"}}, "broker.properties: 'node.id'.*node_id"),
        ({"properties": {"log.dirs": "/x"}}, "'log.dirs'.*use home"),
        ({"port": 9093}, "broker.controller_port: 9093"),
        ({"metrics_port": 9092}, "broker.metrics_port: 9092 is not legal: a port that it has for nothing else"),
        ({"voters": ["one"]}, "broker.voters: 'one' is not legal: id@host:port"),
        ({"voters": ["2@host:9093"]}, "node_id 1.* must be in this list"),
        ({"voters": ["1@host:9093"], "controller": False}, "node_id 1.* it must not be in this list"),
        ({"controller": False}, "broker.voters: '' is not legal: the controllers"),
        ({"host": "0.0.0.0"}, "broker.advertised: '' is not legal"),
        ({"advertised": "host"}, "broker.advertised: 'host' is not legal: host:port"),
        ({"home": "/srv/a,b"}, "broker.home.*without commas"),
        ({"tls_keystore": "/k.pem"}, "broker.tls_truststore: '' is not legal: a PEM file"),
        ({"client_certificates": True}, "broker.client_certificates.*false without tls_keystore"),
        ({"port": 70000}, "broker.port: 70000 is not legal: 1 to 65535"),
        ({"heap": 1}, "did you mean 'heap_mb'"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_legal(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        properties(**fields)


def test_with_a_keystore_all_listeners_speak_tls() -> None:
    stores = {"tls_keystore": "/k.pem", "tls_truststore": "/t.pem"}
    actual_properties = properties(**stores, properties={"listener.name.tls.ssl.truststore.location": "/theirs.pem"})
    assert actual_properties["listeners"] == "TLS://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert actual_properties["advertised.listeners"] == "TLS://127.0.0.1:9092"
    assert actual_properties["listener.security.protocol.map"] == "TLS:SSL,CONTROLLER:SSL"
    assert actual_properties["inter.broker.listener.name"] == "TLS"
    assert (actual_properties["ssl.keystore.location"], actual_properties["ssl.truststore.location"]) == (
        "/k.pem",
        "/t.pem",
    )
    assert actual_properties["listener.name.tls.ssl.client.auth"] == "none"
    assert actual_properties["listener.name.controller.ssl.client.auth"] == "required"
    assert actual_properties["listener.name.tls.ssl.truststore.location"] == "/theirs.pem", "a user's other clients"
    assert properties(**stores, client_certificates=True)["listener.name.tls.ssl.client.auth"] == "required"
    assert controller_properties(actual_properties)["listeners"] == "CONTROLLER://127.0.0.1:9093"


def test_partitions_may_be_in_folders_of_their_own() -> None:
    actual_properties = properties(data_folders=("/a", "/b"))
    assert (actual_properties["log.dirs"], actual_properties["metadata.log.dir"]) == ("/a,/b", "/srv/broker/data")
    assert "metadata.log.dir" not in properties()


def test_an_open_address_is_reached_over_loopback_by_its_own_controller() -> None:
    actual_properties = properties(host="0.0.0.0", advertised="kafka.example:9092")
    assert actual_properties["listeners"].startswith("PLAINTEXT://0.0.0.0:9092")
    assert actual_properties["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert actual_properties["advertised.listeners"] == "PLAINTEXT://kafka.example:9092"
    assert properties(host="::1")["advertised.listeners"] == "PLAINTEXT://[::1]:9092"


def test_properties_are_escaped_as_java_reads_them() -> None:
    assert written({"a b": " x", "p:q": "C:\\d\n", "n": "\u017e\U0001f600"}) == (
        "a\\ b=\\ x\np\\:q=C\\:\\\\d\\n\nn=\\u017e\\ud83d\\ude00\n"
    )


def test_small_heaps_use_the_small_collector_and_the_users_options_come_last() -> None:
    java = Java(Path("/usr/bin/java"), "17.0.1")
    jars = [Path("/jars/b.jar"), Path("/jars/a.jar")]
    small = Settings(home=HOME, heap_mb=512, jvm_options=("-Dx=y",))
    command = broker_command(java, jars, small, BrokerFiles(HOME), ["-XX:SharedArchiveFile=/a.jsa"])
    assert command[:3] == ["/usr/bin/java", "-Xmx512m", "-XX:+UseSerialGC"]
    assert command[-5:] == ["-Dx=y", "-cp", "/jars/a.jar:/jars/b.jar", "kafka.Kafka", "/srv/broker/server.properties"]
    assert "-XX:+UseG1GC" in broker_command(java, jars, Settings(home=HOME, heap_mb=4096), BrokerFiles(HOME))
    assert class_path(jars) == class_path(jars[::-1])


def meta(data: Path, cluster_id: str = CLUSTER, node_id: int = 1) -> None:
    data.mkdir(parents=True, exist_ok=True)
    (data / "meta.properties").write_text(f"#\n#a date\nnode.id={node_id}\nversion=1\ncluster.id={cluster_id}\n")


class Tool:
    """Replaces Kafka's storage tool."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.formatted: list[str] = []

    async def __call__(self, cluster_id: str) -> None:
        self.formatted.append(cluster_id)
        meta(self.data, cluster_id)


async def test_an_empty_folder_is_formatted_once(tmp_path: Path) -> None:
    tool = Tool(tmp_path / "data")
    owner = await ensure_format(tool.data, cluster_id="", node_id=1, format=tool)
    assert await ensure_format(tool.data, cluster_id="", node_id=1, format=tool) == owner
    assert tool.formatted == [owner.cluster_id]
    check_cluster_id(owner.cluster_id)


@pytest.mark.parametrize("left", [None, "", "#\nversion=1\n", "cluster.id=x\nnode.id=\n"])
async def test_a_half_formatted_folder_is_formatted_again(tmp_path: Path, left: str | None) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"half")
    if left is not None:
        (tmp_path / "meta.properties").write_text(left)
    tool = Tool(tmp_path)
    assert await ensure_format(tmp_path, cluster_id=CLUSTER, node_id=1, format=tool) == FolderOwner(CLUSTER, 1)
    assert tool.formatted == [CLUSTER]


async def test_partitions_without_an_owner_are_never_formatted_over(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").write_bytes(b"records")
    tool = Tool(tmp_path)
    with pytest.raises(FailedPrecondition, match=r"orders-0.*meta.properties is missing"):
        await ensure_format(tmp_path, cluster_id="", node_id=1, format=tool)
    assert tool.formatted == []


async def test_the_folder_of_another_cluster_or_broker_is_refused_by_name(tmp_path: Path) -> None:
    meta(tmp_path)
    tool = Tool(tmp_path)
    other = new_cluster_id()
    with pytest.raises(FailedPrecondition, match=f"belongs to the Kafka cluster {CLUSTER}, not to {re.escape(other)}"):
        await ensure_format(tmp_path, cluster_id=other, node_id=1, format=tool)
    with pytest.raises(FailedPrecondition, match=r"belongs to broker 1 .*, not to broker 2"):
        await ensure_format(tmp_path, cluster_id="", node_id=2, format=tool)
    assert tool.formatted == []
    assert owner_of(tmp_path) == FolderOwner(CLUSTER, 1)


def text_of(folder: Path) -> dict[str, str]:
    return dict(line.split("=") for line in (folder / "meta.properties").read_text().splitlines())


def test_every_folder_gets_the_bootstrap_file_and_an_id_of_its_own(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("data", "a", "b")]
    write_format(folders, FolderOwner(CLUSTER, 7), b"levels")
    texts = [text_of(folder) for folder in folders]
    for folder, text in zip(folders, texts, strict=True):
        assert sorted(path.name for path in folder.iterdir()) == ["bootstrap.checkpoint", "meta.properties"]
        assert (folder / "bootstrap.checkpoint").read_bytes() == b"levels"
        assert {**text, "directory.id": ""} == {
            "node.id": "7", "directory.id": "", "version": "1", "cluster.id": CLUSTER,
        }  # fmt: skip
        check_cluster_id(text["directory.id"])  # in the form of a cluster id
    assert len({text["directory.id"] for text in texts}) == 3


def test_formatting_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    done, half, fresh = folders = [tmp_path / name for name in ("data", "a", "b")]
    write_format([done], FolderOwner(CLUSTER, 1), b"levels")
    before = text_of(done)
    half.mkdir()
    (half / "bootstrap.checkpoint").write_bytes(b"lev")
    (half / "meta.properties").write_text("#\nversion=1\n")
    write_format(folders, FolderOwner(CLUSTER, 1), b"levels")
    assert text_of(done) == before
    assert [owner_of(folder) for folder in folders] == [FolderOwner(CLUSTER, 1)] * 3
    assert (half / "bootstrap.checkpoint").read_bytes() == (fresh / "bootstrap.checkpoint").read_bytes() == b"levels"


def test_a_data_folder_of_another_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    meta(tmp_path / "a", node_id=2)
    folders = [tmp_path / name for name in ("data", "b", "a")]
    with pytest.raises(FailedPrecondition, match=r"broker.data_folders: .*/a belongs to broker 2 .*, not to broker 1"):
        write_format(folders, FolderOwner(CLUSTER, 1), b"levels")
    (tmp_path / "a" / "meta.properties").unlink()
    (tmp_path / "a" / "orders-0").mkdir()
    (tmp_path / "a" / "orders-0" / "0.log").write_bytes(b"records")
    with pytest.raises(FailedPrecondition, match=r"broker.data_folders: .*orders-0"):
        write_format(folders, FolderOwner(CLUSTER, 1), b"levels")
    assert not any(folder.exists() for folder in folders[:2])


async def test_the_tool_too_formats_no_data_folder_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a" / "orders-0").mkdir(parents=True)
    (tmp_path / "a" / "orders-0" / "0.log").write_bytes(b"records")
    settings = Settings(home=tmp_path / "home", data_folders=(str(tmp_path / "a"),))
    java, jars = Java(Path("/nowhere/java"), "0"), [tmp_path / "kafka-0" / "one.jar"]
    with pytest.raises(FailedPrecondition, match=r"broker.data_folders: .*orders-0"):
        await format_storage(java, jars, settings, BrokerFiles(settings.home), CLUSTER)


def test_cluster_ids() -> None:
    assert not any(new_cluster_id().startswith("-") for _ in range(500))
    for text in ("short", "-AAAAAAAAAAAAAAAAAAAAA", CLUSTER + "A", "AAAAAAAAAAAAAAAAAAAAA!", "AAAAAAAAAAAAAAAAAAAAA="):
        with pytest.raises(InvalidArgument, match=re.escape("broker.cluster_id")):
            check_cluster_id(text)


def test_the_reason_is_the_first_exception_told() -> None:
    lines = """2026-01-01T00:00:00.000Z INFO  Kafka: starting
2026-01-01T00:00:00.000Z ERROR Kafka$: Exiting Kafka due to fatal exception
org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration num.network.threads
\tat kafka.Kafka$.main(Kafka.scala:75)
java.lang.IllegalStateException: later
"""
    assert reason_in(lines) == "Invalid value abc for configuration num.network.threads (ConfigException)"
    assert reason_in("x INFO a\nx ERROR b\nx INFO c") == "x ERROR b"
    uncaught = 'Exception in thread "main" java.lang.IllegalStateException: no good'
    assert reason_in(uncaught) == "no good (IllegalStateException)"
    assert reason_in("x INFO all is well") == ""
