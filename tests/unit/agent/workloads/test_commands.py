"""How a workload is started: its command, its settings, its ports and its plugins."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import javaproperties
import pytest

from keelman.agent.workloads.commands import COMMANDS, command_table, toml
from keelman.api.node.v1.workload_pb2 import (
    BrokerWorkload,
    PluginFile,
    ResourceLimits,
    SparkWorkload,
    WorkerWorkload,
    Workload,
    WorkloadSpec,
)
from keelman.kafka_connect.settings import Settings as ConnectSettings
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.home import Home
from keelman.runtime.settings import load
from keelman.spark.settings import Settings as SparkSettings
from keelman.workers.client_properties import read_client_properties

WORKLOADS = {
    "broker": WorkloadSpec(
        broker=BrokerWorkload(
            broker_cluster="default", kafka_cluster_id="x" * 22, broker_id=3, host="127.0.0.1", port=9192,
            controller_port=9193, properties={"log.retention.hours": "5", 'odd "key"': "back\\slash\n\x7f é 𝄞"},
        )
    ),
    "spark": WorkloadSpec(spark=SparkWorkload(host="127.0.0.1", port=7431, master="local[9,1]")),
    "worker": WorkloadSpec(
        worker=WorkerWorkload(
            worker_cluster="demo", host="127.0.0.1", port=8084, spark_address="127.0.0.1:7431",
            reports_bootstrap_servers="127.0.0.1:9192",
            properties={"group.id": "demo", "sasl.jaas.config": "a=b c:\\d\n", "key": " padded"},
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(WORKLOADS))
def test_each_service_reads_the_settings_written_for_it(kind: str, tmp_path: Path) -> None:
    home = Home(tmp_path)
    command = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=WORKLOADS[kind]), home)
    assert command.command[1:6] == ("-P", "-m", f"keelman.{kind}", "run", "--file")
    file = tmp_path / "settings.toml"
    file.write_text(command.files["settings.toml"])
    settings = load(importlib.import_module(f"keelman.{kind}.settings").Settings, kind, file=file).settings
    assert settings.health_socket == home.socket(f"{kind}/x/0")
    match kind:
        case "broker":
            spec = WORKLOADS[kind].broker
            assert (settings.port, settings.controller_port, settings.node_id) == (9192, 9193, 3)
            assert settings.properties == dict(spec.properties)
            assert settings.home.is_relative_to(home.workload("broker/x/0"))
            assert command.ports == (("127.0.0.1", 9192), ("127.0.0.1", 9193))
        case "spark":
            assert (settings.port, settings.master, settings.node) == (7431, "local[9,1]", "n1")
            assert command.ports == (("127.0.0.1", 7431),)
        case "worker":
            spec = WORKLOADS[kind].worker
            assert (settings.worker_cluster, settings.spark_address) == ("demo", "127.0.0.1:7431")
            assert settings.reports_bootstrap_servers == "127.0.0.1:9192"
            assert settings.properties_file == home.workload("worker/x/0") / "worker.properties"
            assert javaproperties.loads(command.files["worker.properties"]) == dict(spec.properties)
            assert command.ports == (("127.0.0.1", 8084),)


def test_a_worker_has_a_port_for_each_of_its_listeners(tmp_path: Path) -> None:
    spec = WorkerWorkload(host="10.0.0.4", port=8083, admin_port=8084, metrics_port=8085, reserved_ports=[9000])
    command = COMMANDS["worker"](Workload(name="worker/x/0", spec=WorkloadSpec(worker=spec)), Home(tmp_path))
    assert command.ports == (("10.0.0.4", 8083), ("10.0.0.4", 8084), ("10.0.0.4", 8085))


def test_a_broker_only_has_one_port_and_the_voters(tmp_path: Path) -> None:
    spec = BrokerWorkload(
        broker_cluster="default", kafka_cluster_id="x" * 22, broker_id=4, host="10.0.0.4", port=9092,
        voters="0@10.0.0.1:9093,1@10.0.0.2:9093,2@10.0.0.3:9093", replicas=3, heap_mb=700,
        routes={"a.example": "10.0.0.9"},
    )  # fmt: skip
    command = COMMANDS["broker"](Workload(name="broker/x/4", spec=WorkloadSpec(broker=spec)), Home(tmp_path))
    file = tmp_path / "settings.toml"
    file.write_text(command.files["settings.toml"])
    settings = load(importlib.import_module("keelman.broker.settings").Settings, "broker", file=file).settings
    assert command.ports == (("10.0.0.4", 9092),)
    assert (settings.controller, settings.replicas, len(settings.voters), settings.heap_mb) == (False, 3, 3, 700)
    assert command.routes == Home(tmp_path).workload("broker/x/4") / "routes.json"


def test_what_a_broker_is_told_to_have_beside_its_folder_is_below_the_data_root(tmp_path: Path) -> None:
    home, spec = (
        Home(tmp_path),
        BrokerWorkload(broker_cluster="x", host="h", port=1, controller_port=2, controller=True),
    )
    spec.data_folders.extend(["/data/x-0", "/more/x-0"])
    workload = Workload(name="broker/x/0", spec=WorkloadSpec(broker=spec))
    for table, root in ((COMMANDS, home.broker_data), (command_table(data_root=Path("/")), Path("/"))):
        command = table["broker"](workload, home)
        expected = [root / "data/x-0", root / "more/x-0"]
        file = tmp_path / "settings.toml"
        file.write_text(command.files["settings.toml"])
        settings = load(importlib.import_module("keelman.broker.settings").Settings, "broker", file=file).settings
        assert settings.data_folders == tuple(map(str, expected))
        assert command.folders == tuple(expected)
    spec.data_folders[0] = "/data/../../etc"
    with pytest.raises(InvalidArgument, match="data_folders"):
        COMMANDS["broker"](Workload(name="broker/x/0", spec=WorkloadSpec(broker=spec)), home)


@pytest.mark.parametrize("kind", ["spark", "worker"])
def test_how_brokers_of_reports_are_reached_stands_in_a_file(kind: str, tmp_path: Path) -> None:
    spec = WorkloadSpec()
    spec.CopyFrom(WORKLOADS[kind])
    getattr(spec, kind).reports_client_properties.update({"sasl.jaas.config": 'x required password="a b";'})
    home = Home(tmp_path)
    command = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=spec), home)
    assert "password" not in command.files["settings.toml"] + " ".join(command.command)
    (tmp_path / "settings.toml").write_text(command.files["settings.toml"])
    module = importlib.import_module(f"keelman.{kind}.settings")
    settings = load(module.Settings, kind, file=tmp_path / "settings.toml").settings
    assert settings.reports_properties_file == home.workload(f"{kind}/x/0") / "reports.properties"
    (tmp_path / "reports.properties").write_text(command.files["reports.properties"])
    client_properties = read_client_properties("x", tmp_path / "reports.properties")
    assert client_properties == {"sasl.jaas.config": 'x required password="a b";'}
    plain = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=WORKLOADS[kind]), home)
    assert "reports.properties" not in plain.files


def test_toml_puts_tables_last() -> None:
    text = toml({"a": {"k.l": "v"}, "b": 3, "c": Path("/x")})
    assert tomllib.loads(text) == {"b": 3, "c": "/x", "a": {"k.l": "v"}}


def test_a_spark_service_trusts_whom_its_agent_does_or_whom_its_own_file_says(tmp_path: Path) -> None:
    work = Workload(name="spark/n1", node="n1", spec=WORKLOADS["spark"])
    for trust in ("loopback", "mesh"):
        assert f'trust = "{trust}"' in command_table(trust)["spark"](work, Home(tmp_path)).files["settings.toml"]
    (tmp_path / "spark.toml").write_text('trust = "mesh"')
    assert 'trust = "mesh"' in command_table()["spark"](work, Home(tmp_path)).files["settings.toml"]


def test_a_driver_has_the_settings_of_its_cluster_over_those_of_its_node(tmp_path: Path) -> None:
    home, own = Home(tmp_path), tmp_path / "own.properties"
    own.write_text("spark.ui.enabled=true\nspark.cores.max=4\n")
    (tmp_path / "spark.toml").write_text(
        f'master = "local[1,1]"\nadvertised_address = "n1.example:7431"\nexecutor_cores = 8\n'
        f'executor_python = "/usr/bin/python3"\nspark_properties = "{own}"\n'
    )
    spec = SparkWorkload(
        host="127.0.0.1", port=7440, slot_port=7441, master="spark://m:7077", cluster="big",
        properties={"spark.cores.max": "16"}, executor_cores=4, executor_memory_mb=900,
    )  # fmt: skip
    workload = Workload(name="spark/@big/1", node="n1", spec=WorkloadSpec(spark=spec))
    command = COMMANDS["spark"](workload, home)
    (tmp_path / "settings.toml").write_text(command.files["settings.toml"])
    settings = load(SparkSettings, "spark", file=tmp_path / "settings.toml").settings
    assert (settings.master, settings.cluster, settings.standby) == ("spark://m:7077", "big", True)
    assert (settings.advertised_address, settings.port) == ("127.0.0.1:7441", 7440)
    assert (settings.executor_cores, settings.executor_memory_mb) == (4, 900)
    assert settings.executor_python == "/usr/bin/python3", "of the node, as the cluster has none"
    assert settings.node == "@big/1", "its reports are not those of the node's own service"
    assert settings.work_folder == home.workload("spark/@big/1") / "work"
    assert settings.spark_properties == home.workload("spark/@big/1") / "spark-defaults.properties"
    text = command.files["spark-defaults.properties"]
    assert javaproperties.loads(text) == {"spark.ui.enabled": "true", "spark.cores.max": "16"}
    assert command.ports == (("127.0.0.1", 7440), ("127.0.0.1", 7441))
    own.unlink()
    with pytest.raises(InvalidArgument, match=r"spark_properties of spark\.toml"):
        COMMANDS["spark"](workload, home)


def test_a_worker_waits_for_a_driver_of_its_spark_cluster(tmp_path: Path) -> None:
    spec = WorkerWorkload(worker_cluster="x", host="127.0.0.1", port=8083, spark_cluster="big")
    with pytest.raises(Unavailable, match="Spark cluster big has no driver yet"):
        COMMANDS["worker"](Workload(name="worker/x/0", spec=WorkloadSpec(worker=spec)), Home(tmp_path))


def test_a_worker_gets_its_plugins_behind_its_own_and_java_workers_what_they_know(tmp_path: Path) -> None:
    home = Home(tmp_path)
    acme = PluginFile(name="acme", version="1", sha256="ab", file_name="acme.zip")
    driver = PluginFile(name="driver", version="2", sha256="cd", file_name="driver.jar")
    properties = {"plugin.path": "/opt/mine", "keelman.cpus": "2", "group.id": "g", "keelman.metrics.listeners": "x"}
    spec = WorkerWorkload(host="10.0.0.1", port=8083, properties=properties, plugins=[acme], libraries=[driver])
    command = COMMANDS["worker"](Workload(name="worker/demo/0", spec=WorkloadSpec(worker=spec)), home)
    tree = javaproperties.loads(command.files["worker.properties"])
    assert tree["plugin.path"] == f"/opt/mine,{tmp_path}/plugins/ab"
    assert tree["keelman.plugin.libraries"] == f"{tmp_path}/plugins/cd"
    assert tomllib.loads(command.files["settings.toml"])["plugins"] == {f"{tmp_path}/plugins/ab": "acme 1"}
    assert command.files["plugins.json"] == '["ab", "cd"]'

    spec.kafka_connect, spec.metrics_port = True, 9400
    java = Workload(name="worker/demo/0", spec=WorkloadSpec(worker=spec), limits=ResourceLimits(memory_bytes=1 << 30))
    command = COMMANDS["worker"](java, home)
    assert command.command[3:5] == ("keelman.kafka_connect", "run")
    assert command.ports == (("10.0.0.1", 8083), ("10.0.0.1", 9400))
    tree = javaproperties.loads(command.files["worker.properties"])
    assert tree == {"group.id": "g", "plugin.path": f"/opt/mine,{tmp_path}/plugins/ab"}
    file = _written(tmp_path / "s.toml", command.files["settings.toml"])
    settings = load(ConnectSettings, "kafka_connect", environment={}, file=file).settings
    assert (settings.heap_mb, settings.url) == (614, "http://10.0.0.1:8083")
    assert settings.libraries == (f"{tmp_path}/plugins/cd",)


def test_a_worker_gets_its_cluster_s_data_folder_where_the_policy_allows_it(tmp_path: Path) -> None:
    home, key = Home(tmp_path), "keelman.policy.installation.paths.allowed"
    for paths, folders in (("data,/srv", (tmp_path / "data" / "demo",)), ("/srv", ()), ("*", ())):
        spec = WorkerWorkload(worker_cluster="demo", host="10.0.0.1", port=8083, properties={key: paths})
        result = COMMANDS["worker"](Workload(name="worker/demo/0", spec=WorkloadSpec(worker=spec)), home)
        allowed = javaproperties.loads(result.files["worker.properties"])[key]
        assert allowed == paths.replace("data", f"{tmp_path}/data/demo")
        assert result.folders == folders


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file
