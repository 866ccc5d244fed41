"""Masters, the addresses that slots call home to, and packs: the legal values and the messages to users."""

import json
import socket
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest

from keelman.agent.workloads import commands
from keelman.api.copy.v1.ticket_pb2 import Plugin, StartTicket
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.home import Home
from keelman.runtime.settings import load
from keelman.spark.masters.connect import interpreter
from keelman.spark.masters.executors import Executors
from keelman.spark.masters.jobs import short
from keelman.spark.masters.master import unfit
from keelman.spark.masters.pack import MANIFEST, Pack, installed, python_version
from keelman.spark.masters.slot_home import SlotHome, SlotListener
from keelman.spark.service import open_slot_listener
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master, MasterKind

FAR = Master.of("spark://far:7077")


@pytest.mark.parametrize(
    ("url", "kind", "near"),
    [
        ("local[256,1]", MasterKind.LOCAL, True),
        ("spark://a:7077,b:7077", MasterKind.STANDALONE, False),
        ("spark://127.0.0.1:7077", MasterKind.STANDALONE, True),
        ("sc://[::1]:15002/;token=x", MasterKind.CONNECT, True),
        ("sc://spark.example:15002", MasterKind.CONNECT, False),
    ],
)
def test_masters_that_are_served(url: str, kind: MasterKind, near: bool) -> None:
    master = Master.of(url)
    assert (master.kind, master.near) == (kind, near)
    assert "token" not in master.shown


@pytest.mark.parametrize("url", ["yarn", "k8s://https://a", "spark://", "spark://a:b:c", "", "sc://a:x"])
def test_others_are_refused_with_what_is_legal(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spark\.master.*sc://host:port"):
        Master.of(url)


def test_slots_of_other_hosts_need_an_address_and_tls(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"spark\.advertised_address"):
        SlotHome.of(Settings(), FAR)
    with pytest.raises(InvalidArgument, match="tls_certificate and tls_key"):
        SlotHome.of(Settings(advertised_address="10.0.0.1:7431"), FAR)
    with pytest.raises(InvalidArgument, match="tls_certificate and tls_key"):
        SlotHome.of(Settings(advertised_address="127.0.0.1:7431", advertised_bind_host="0.0.0.0"), FAR)
    pem = tmp_path / "a.pem"
    settings = Settings(advertised_address="10.0.0.1:7431", tls_certificate=pem, tls_key=pem, tls_server_name="slots")
    with pytest.raises(InvalidArgument, match="readable PEM file"):
        SlotHome.of(settings, FAR)
    pem.write_text("-----BEGIN CERTIFICATE-----")
    home = SlotHome.of(settings, FAR)
    assert (home.address, home.ca, home.server_name) == ("10.0.0.1:7431", pem.read_text(), "slots")
    pem.write_text("-----BEGIN CERTIFICATE----- of the next CA")
    assert home.newest_ca() == pem.read_text(), "slots that start now trust the CA that signs now"
    pem.unlink()
    assert home.newest_ca() == "-----BEGIN CERTIFICATE-----"
    assert home.listener is not None
    assert (home.listener.host, home.listener.port) == ("10.0.0.1", 7431)


def test_a_master_on_this_host_calls_the_main_port() -> None:
    for url in ("local[4,1]", "spark://localhost:7077"):
        assert SlotHome.of(Settings(port=7777), Master.of(url)) == SlotHome("127.0.0.1:7777")


def test_executors_get_the_pack_and_the_way_to_the_driver(tmp_path: Path) -> None:
    properties = tmp_path / "spark.properties"
    properties.write_text("spark.executor.memory=2g\nspark.task.maxFailures=1\n")
    settings = Settings(advertised_address="10.0.0.1:7431", spark_properties=properties, pack=tmp_path / "p.tar.gz")
    pack = Pack(tmp_path / "p.tar.gz", "1", "3.11", "any", {})
    configuration = Executors.of(settings, FAR, pack, ["/more"], ["a.b"]).configuration
    assert configuration["spark.driver.host"] == configuration["spark.driver.bindAddress"] == "10.0.0.1"
    assert configuration["spark.pyspark.python"] == f"python{python_version()}"
    assert configuration["spark.archives"].endswith("p.tar.gz#keelman-pack")
    assert configuration["spark.executorEnv.PYTHONPATH"] == "keelman-pack:/more"
    assert configuration["spark.executor.memory"] == "2g"


def test_what_needs_its_node_does_not_fit_executors_elsewhere() -> None:
    file = StartTicket(connector="lines", connector_config={"connector.class": "FileStreamSource"})
    problem = unfit(FAR, file)
    assert "connector lines: FileStreamSource needs the files" in problem
    assert "local[256,1]" in problem
    assert unfit(Master.of("local[4,1]"), file) == unfit(Master.of("spark://127.0.0.1:7077"), file) == ""
    assert unfit(FAR, StartTicket(connector_config={"connector.class": "VerifiableSource"})) == ""
    assert unfit(FAR, StartTicket(connector_config={"connector.class": "com.acme.Unknown"})) == ""
    assert "acme 1.4" in unfit(FAR, StartTicket(plugin=Plugin(name="acme 1.4", folder="/x")))


def test_what_needs_its_node_does_not_fit_a_driver_on_another_host_whatever_its_master() -> None:
    file = StartTicket(connector="lines", connector_config={"connector.class": "FileStreamSource"})
    plugin = StartTicket(connector="acme", plugin=Plugin(name="acme 1.4", folder="/x"))
    for master in (FAR, Master.of("local[4,1]"), Master.of("spark://127.0.0.1:7077")):
        for ticket in (file, plugin):
            problem = unfit(master, ticket, cluster="big")
            assert "Spark cluster big runs its tasks on other hosts" in problem
            assert "without a spark_cluster" in problem
        assert unfit(master, StartTicket(connector_config={"connector.class": "VerifiableSource"}), "big") == ""


def test_executors_of_a_connect_server_run_a_script_as_python(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(interpreter("/usr/bin/env", {"A": "b $c", "PYTHONPATH": "/x y"}, "keelman-pack"))
    process = subprocess.run(
        ["sh", script, "-u", "NONE"], env={"PYTHONPATH": "/q"}, capture_output=True, text=True, check=True
    )
    assert f"PYTHONPATH={tmp_path}/keelman-pack:/x y:/q\n" in process.stdout
    assert "A=b $c\n" in process.stdout
    script.write_text(interpreter("echo", {}, ""))
    process = subprocess.run(["sh", script, "-m", "pyspark.daemon", "w"], capture_output=True, text=True, check=True)
    assert process.stdout == "-m keelman.engine.slot.daemon w\n"


def test_the_line_of_a_spark_error_that_says_what_happened() -> None:
    java = "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted\n\tat a.b\n"
    assert short(RuntimeError(java)) == "org.apache.spark.SparkException: Job aborted"
    python = java + "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] worker 3.12, driver 3.11\n"
    assert "PYTHON_VERSION_MISMATCH" in short(RuntimeError(python))


def test_a_nodes_own_settings_reach_its_spark_service(tmp_path: Path) -> None:
    (tmp_path / "spark.toml").write_text('master = "spark://a:7077"\nwarm_slots = false\nport = 9\n')
    workload = Workload(name="spark/n", node="n")
    workload.spec.spark.port, workload.spec.spark.master = 7430, "local[256,1]"
    file = tmp_path / "settings.toml"
    file.write_text(commands.spark(workload, Home(tmp_path)).files["settings.toml"])
    settings = load(Settings, "spark", file=file).settings
    assert (settings.master, settings.warm_slots, settings.port) == ("spark://a:7077", False, 7430)
    (tmp_path / "spark.toml").write_text("master = ")
    with pytest.raises(InvalidArgument, match=r"spark\.toml"):
        commands.spark(workload, Home(tmp_path))


def archive(file: Path, **manifest: object) -> Path:
    with tarfile.open(file, "w:gz") as opened:
        text = json.dumps(manifest).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(text)
        opened.addfile(info, BytesIO(text))
    return file


def test_a_pack_of_another_python_or_no_pack_is_refused(tmp_path: Path) -> None:
    file = archive(tmp_path / "p.tar.gz", version="0", python="3.8", platform="any", packages={}, sizes={})
    with pytest.raises(InvalidArgument, match=r"of Python 3\.8: make it again with `keelman spark pack`"):
        Pack.read(file)
    (tmp_path / "text.tar.gz").write_text("no archive")
    for wrong in (tmp_path / "none.tar.gz", tmp_path / "text.tar.gz"):
        with pytest.raises(InvalidArgument, match="an archive of `keelman spark pack`"):
            Pack.read(wrong)


def test_a_pack_holds_all_that_slots_need_and_nothing_of_the_services() -> None:
    packages = installed(["keelman[slot]", "pyarrow", "pandas"])
    assert {"confluent-kafka", "grpcio", "protobuf", "pyarrow", "pandas", "numpy"} <= set(packages)
    assert not {"pyspark", "sqlmodel", "pytest"} & set(packages)


async def test_a_door_whose_port_is_taken_is_named_by_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        door = SlotListener("127.0.0.1", listener.getsockname()[1], None)
        with pytest.raises(Unavailable, match=r"^spark\.advertised_address: port \d+ on 127\.0\.0\.1 is taken"):
            async with open_slot_listener(door, cast("Any", None)):
                pass
