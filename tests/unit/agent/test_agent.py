"""The agent's parts: assignments, versions, reporter, commands, settings, words about an end."""

from __future__ import annotations

import asyncio
import importlib
import os
import pwd
import signal
import tomllib
from pathlib import Path

import javaproperties
import pytest

from keelman.agent.api import AgentApi
from keelman.agent.assignments import KEPT_FENCES, Assignments, Versions
from keelman.agent.reporter import Reporter
from keelman.agent.service import lock
from keelman.agent.settings import Settings
from keelman.agent.workloads.commands import COMMANDS, command_table, toml
from keelman.agent.workloads.local import words_of
from keelman.agent.workloads.surroundings import Surroundings, surroundings_for
from keelman.api.node.v1.agent_service_pb2 import ListLocalWorkloadsRequest
from keelman.api.node.v1.session_service_pb2 import Assignments as Message
from keelman.api.node.v1.workload_pb2 import (
    BrokerWorkload,
    PluginFile,
    ResourceLimits,
    SparkWorkload,
    WorkerWorkload,
    Workload,
    WorkloadGoal,
    WorkloadSpec,
    WorkloadState,
    WorkloadStatus,
)
from keelman.kafka_connect.settings import Settings as ConnectSettings
from keelman.model.errors import Conflict, FailedPrecondition, InvalidArgument
from keelman.model.rules.names import legal_name
from keelman.runtime.home import Home, SharedHome
from keelman.runtime.processes.children import Exit
from keelman.runtime.processes.users import User
from keelman.runtime.settings import load
from keelman.workers.client_properties import read_client_properties


def workload(name: str, generation: int = 1, uid: str = "u") -> Workload:
    goal = WorkloadGoal.WORKLOAD_GOAL_RUNNING
    spec = WorkloadSpec(worker=WorkerWorkload(worker_cluster="demo", properties={"password": "hunter2"}))
    return Workload(name=name, uid=uid, generation=generation, goal=goal, spec=spec)


def complete(*workloads: Workload) -> Message:
    return Message(complete=True, to_version=1, workloads=workloads)


def test_assignments_are_kept_for_the_next_agent_and_only_its_owner_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "a" / "assignments.json"
    first = Assignments(file)
    first.load()
    assert not first.known
    first.apply(complete(workload("worker/a/0"), workload("worker/a/1")))
    first.apply(Message(from_version=1, to_version=2, workloads=[workload("worker/a/2")], removed=["worker/a/0"]))
    assert file.stat().st_mode & 0o777 == 0o600

    second = Assignments(file)
    second.load()
    assert second.known
    assert second.workloads == first.workloads
    assert sorted(second.workloads) == ["worker/a/1", "worker/a/2"]
    # The fence is kept too, also that of a workload which is gone.
    second.apply(Message(workloads=[workload("worker/a/2", 5)]))
    third = Assignments(file)
    third.load()
    third.apply(complete(workload("worker/a/2", 4), workload("worker/a/1", 1)))
    assert third.workloads["worker/a/2"].generation == 5
    third.apply(Message(removed=["worker/a/2"]))
    third.apply(Message(workloads=[workload("worker/a/2", 4)]))
    assert "worker/a/2" not in third.workloads
    third.apply(Message(workloads=[workload("worker/a/2", 1, uid="made anew")]))
    assert third.workloads["worker/a/2"].uid == "made anew"


def test_the_fences_of_workloads_that_went_long_ago_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "assignments.json"
    assignments = Assignments(file)
    names = [f"worker/a/{number}" for number in range(KEPT_FENCES + 1)]
    assignments.apply(complete(workload("worker/stays/0", 5), *(workload(name, 5) for name in names)))
    assignments.apply(Message(removed=names[1:]))
    assignments.apply(Message(removed=names[:1]))
    assert list(assignments.workloads) == ["worker/stays/0"]

    again = Assignments(file)
    again.load()
    longest_gone = names[1]
    again.apply(Message(workloads=[workload(name, 4) for name in (*names, "worker/stays/0")]))
    assert sorted(again.workloads) == sorted([longest_gone, "worker/stays/0"])
    assert again.workloads["worker/stays/0"].generation == 5


@pytest.mark.parametrize("content", ["", "{", "[]", '{"workloads": 3, "fences": {}}', '{"workloads": [{"name": 3}]}'])
def test_an_unreadable_file_counts_as_absent(tmp_path: Path, content: str) -> None:
    file = tmp_path / "assignments.json"
    file.write_text(content)
    assignments = Assignments(file)
    assignments.load()
    assert not assignments.known
    assert assignments.workloads == {}


def test_a_name_that_would_leave_the_folder_is_ignored(tmp_path: Path) -> None:
    assignments = Assignments(tmp_path / "f")
    assignments.apply(complete(workload(".."), workload(""), workload("worker/../0")))
    assert list(assignments.workloads) == ["worker/../0"]
    assert Home(tmp_path).workload("worker/../0").parent == Home(tmp_path).workloads


def test_a_gap_in_the_versions_is_seen() -> None:
    versions = Versions()
    with pytest.raises(Conflict):
        versions.follow(Message(from_version=0, to_version=1))
    versions.follow(Message(complete=True, to_version=7))
    versions.follow(Message(from_version=7, to_version=9))
    with pytest.raises(Conflict, match=r"from version 8.*stands at 9"):
        versions.follow(Message(from_version=8, to_version=10))


def status(state: str, memory: int = 0) -> WorkloadStatus:
    return WorkloadStatus(state=WorkloadState.Value(f"WORKLOAD_STATE_{state}"), memory_bytes=memory)


async def test_the_newest_status_of_each_workload_is_sent_until_it_is_heard() -> None:
    reporter = Reporter()
    reporter.put("a", status("STARTING"))
    reporter.put("b", status("STARTING"))
    reporter.begin()
    first = await reporter.next()
    assert first.complete
    assert first.number == 1
    assert sorted(first.statuses) == ["a", "b"]
    reporter.put("a", status("RUNNING"))
    reporter.put("a", status("FAILED"))
    assert not reporter.acknowledge(0)
    assert reporter.acknowledge(1)
    second = await reporter.next()
    assert not second.complete
    assert dict(second.statuses) == {"a": status("FAILED")}
    # Not heard: the next session tells everything again.
    reporter.begin()
    third = await reporter.next()
    assert third.complete
    assert third.number == 1
    assert third.statuses["a"] == status("FAILED")
    reporter.forget("b")
    assert reporter.acknowledge(1)
    waiting = asyncio.ensure_future(reporter.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert not reporter.put("a", status("FAILED"))
    assert reporter.put("a", status("RUNNING"))
    assert dict((await waiting).statuses) == {"a": status("RUNNING")}


async def test_a_report_grows_with_what_changed_and_not_with_what_is_there() -> None:
    reporter = Reporter()
    for number in range(1000):
        reporter.put(f"worker/c/{number}", status("RUNNING", 100_000_000))
    reporter.begin()
    first = await reporter.next()
    assert len(first.statuses) == 1000
    assert reporter.acknowledge(1)
    for number in range(1000):
        reporter.put(f"worker/c/{number}", status("FAILED" if number == 7 else "RUNNING", 100_000_000))
    second = await reporter.next()
    assert list(second.statuses) == ["worker/c/7"]
    assert second.ByteSize() < first.ByteSize() / 500


async def test_an_empty_node_reports_that_it_is_empty() -> None:
    reporter = Reporter()
    reporter.begin()
    assert (await reporter.next()).complete


def test_a_little_more_memory_is_no_news() -> None:
    reporter = Reporter()
    mib = 1024 * 1024
    assert reporter.put("a", status("RUNNING"))
    assert reporter.put("a", status("RUNNING", 100 * mib))
    assert not reporter.put("a", status("RUNNING", 101 * mib))
    assert reporter.put("a", status("RUNNING", 106 * mib))


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
    made = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=WORKLOADS[kind]), home)
    assert made.command[1:5] == ("-m", f"keelman.{kind}", "run", "--file")
    file = tmp_path / "settings.toml"
    file.write_text(made.files["settings.toml"])
    settings = load(importlib.import_module(f"keelman.{kind}.settings").Settings, kind, file=file).settings
    assert settings.health_socket == home.socket(f"{kind}/x/0")
    match kind:
        case "broker":
            spec = WORKLOADS[kind].broker
            assert (settings.port, settings.controller_port, settings.node_id) == (9192, 9193, 3)
            assert settings.properties == dict(spec.properties)
            assert settings.home.is_relative_to(home.workload("broker/x/0"))
            assert made.ports == (("127.0.0.1", 9192), ("127.0.0.1", 9193))
        case "spark":
            assert (settings.port, settings.master, settings.node) == (7431, "local[9,1]", "n1")
            assert made.ports == (("127.0.0.1", 7431),)
        case "worker":
            spec = WORKLOADS[kind].worker
            assert (settings.worker_cluster, settings.spark_address) == ("demo", "127.0.0.1:7431")
            assert settings.reports_bootstrap_servers == "127.0.0.1:9192"
            assert settings.properties_file == home.workload("worker/x/0") / "worker.properties"
            assert javaproperties.loads(made.files["worker.properties"]) == dict(spec.properties)
            assert made.ports == (("127.0.0.1", 8084),)


def test_a_worker_has_a_port_for_each_of_its_listeners(tmp_path: Path) -> None:
    spec = WorkerWorkload(host="10.0.0.4", port=8083, admin_port=8084, metrics_port=8085, reserved_ports=[9000])
    made = COMMANDS["worker"](Workload(name="worker/x/0", spec=WorkloadSpec(worker=spec)), Home(tmp_path))
    assert made.ports == (("10.0.0.4", 8083), ("10.0.0.4", 8084), ("10.0.0.4", 8085))


def test_a_broker_only_has_one_port_and_the_voters(tmp_path: Path) -> None:
    spec = BrokerWorkload(
        broker_cluster="default", kafka_cluster_id="x" * 22, broker_id=4, host="10.0.0.4", port=9092,
        voters="0@10.0.0.1:9093,1@10.0.0.2:9093,2@10.0.0.3:9093", replicas=3, heap_mb=700,
        routes={"a.example": "10.0.0.9"},
    )  # fmt: skip
    made = COMMANDS["broker"](Workload(name="broker/x/4", spec=WorkloadSpec(broker=spec)), Home(tmp_path))
    file = tmp_path / "settings.toml"
    file.write_text(made.files["settings.toml"])
    settings = load(importlib.import_module("keelman.broker.settings").Settings, "broker", file=file).settings
    assert made.ports == (("10.0.0.4", 9092),)
    assert (settings.controller, settings.replicas, len(settings.voters), settings.heap_mb) == (False, 3, 3, 700)
    assert made.routes == Home(tmp_path).workload("broker/x/4") / "routes.json"


def test_what_a_broker_is_told_to_have_beside_its_folder_is_below_the_data_root(tmp_path: Path) -> None:
    home, spec = (
        Home(tmp_path),
        BrokerWorkload(broker_cluster="x", host="h", port=1, controller_port=2, controller=True),
    )
    spec.data_folders.extend(["/data/x-0", "/more/x-0"])
    workload = Workload(name="broker/x/0", spec=WorkloadSpec(broker=spec))
    for table, root in ((COMMANDS, home.broker_data), (command_table(data_root=Path("/")), Path("/"))):
        made = table["broker"](workload, home)
        wanted = [root / "data/x-0", root / "more/x-0"]
        file = tmp_path / "settings.toml"
        file.write_text(made.files["settings.toml"])
        settings = load(importlib.import_module("keelman.broker.settings").Settings, "broker", file=file).settings
        assert settings.data_folders == tuple(map(str, wanted))
        assert made.folders == tuple(wanted)
    spec.data_folders[0] = "/data/../../etc"
    with pytest.raises(InvalidArgument, match="data_folders"):
        COMMANDS["broker"](Workload(name="broker/x/0", spec=WorkloadSpec(broker=spec)), home)


def test_a_workload_finds_its_own_folder_for_temporary_files_and_no_settings_that_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("PORT", "LOG_LEVEL"):
        monkeypatch.setenv(f"KEELMAN_WORKER_{key}", "x")
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setenv("SECRET_OF_SOMEBODY", "s")
    found = Surroundings().environment("worker", tmp_path, {"settings.toml": "port = 1\n"})
    assert found["TMPDIR"] == str(tmp_path / "tmp")
    assert found["PATH"]
    assert {name for name in found if name.startswith(("KEELMAN_WORKER_", "SECRET"))} == {"KEELMAN_WORKER_LOG_LEVEL"}
    assert Surroundings(("SECRET_*",)).environment("worker", tmp_path)["SECRET_OF_SOMEBODY"] == "s"
    Surroundings().prepare(tmp_path / "w", tmp_path / "run" / "w.sock")
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "w" / "tmp").stat().st_mode & 0o777 == 0o700
    (tmp_path / "w" / "tmp" / "old").touch()
    Surroundings().prepare(tmp_path / "w", tmp_path / "run" / "w.sock")
    assert list((tmp_path / "w" / "tmp").iterdir()) == []


def test_workloads_of_another_user_find_that_users_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = User("somebody", 61234, 61234, (), "/nonexistent")
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("XDG_CACHE_HOME", "/root/.cache")
    found = Surroundings(user=user, cache=tmp_path / "cache").environment("worker", tmp_path / "w")
    assert "XDG_CACHE_HOME" not in found
    assert {k: found[k] for k in ("USER", "LOGNAME", "HOME", "KEELMAN_CACHE")} == {
        "USER": "somebody", "LOGNAME": "somebody", "HOME": str(tmp_path / "w"),
        "KEELMAN_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    # Sockets of workloads are in a folder of their own, those of services are where they were.
    home, shared = Home(tmp_path), SharedHome(tmp_path)
    assert shared.socket("agent") == home.socket("agent")
    assert shared.socket("worker/a/0").parent != home.socket("worker/a/0").parent
    assert shared.workload("worker/a/0") == home.workload("worker/a/0")
    # And those of brokers, where these are a third user's; the others stay where they are.
    of_brokers = SharedHome(tmp_path, workloads_apart=False, brokers_apart=True)
    assert of_brokers.socket("worker/a/0") == home.socket("worker/a/0")
    folders = {SharedHome(tmp_path, brokers_apart=True).socket(f"{kind}/a").parent for kind in ("broker", "spark")}
    assert len(folders | {home.socket("agent").parent}) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others")
def test_brokers_may_have_a_user_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEELMAN_CACHE", raising=False)

    def found(user: str, broker_user: str) -> list[tuple[str | None, str | None]]:
        made = surroundings_for(user, (), 0o022, Home(tmp_path), broker_user=broker_user)
        kinds = [made.of(kind) for kind in ("broker", "worker", "spark")]
        return [(one.user.name if one.user else None, one.cache.name if one.cache else None) for one in kinds]

    others = ("nobody", "cache")
    assert found("nobody", "") == [others] * 3
    assert found("nobody", "daemon") == [("daemon", "cache-of-brokers"), others, others]
    assert found("", "daemon") == [("daemon", "cache-of-brokers"), (None, None), (None, None)]
    assert found("nobody", "root") == [(None, None), others, others]
    assert found("nobody", "nobody") == [others] * 3
    for user in ("", "nobody"):
        assert surroundings_for(user, (), 0o022, Home(tmp_path), broker_user="daemon").record_owner == 0
    with pytest.raises(InvalidArgument, match=r"agent.broker_user: 'nobody-at-all' is not legal: a user of this"):
        found("", "nobody-at-all")


def test_a_user_for_workloads_is_refused_where_the_agent_cannot_become_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert surroundings_for(me, (), 0o077, Home(tmp_path)).user is None
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(InvalidArgument, match=r"agent.workload_user: 'nobody' is not legal: empty, unless .* root"):
        surroundings_for("nobody", (), 0o077, Home(tmp_path))


@pytest.mark.parametrize("umask", ["", "77", "0o77", "088", "u=rw"])
def test_a_umask_is_octal_digits(umask: str) -> None:
    assert Settings(umask="027").surroundings.umask == 0o027
    with pytest.raises(InvalidArgument, match=r"agent\.umask"):
        _ = Settings(umask=umask).surroundings


@pytest.mark.parametrize("kind", ["spark", "worker"])
def test_how_brokers_of_reports_are_reached_stands_in_a_file(kind: str, tmp_path: Path) -> None:
    spec = WorkloadSpec()
    spec.CopyFrom(WORKLOADS[kind])
    getattr(spec, kind).reports_client_properties.update({"sasl.jaas.config": 'x required password="a b";'})
    home = Home(tmp_path)
    made = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=spec), home)
    assert "password" not in made.files["settings.toml"] + " ".join(made.command)
    (tmp_path / "settings.toml").write_text(made.files["settings.toml"])
    module = importlib.import_module(f"keelman.{kind}.settings")
    settings = load(module.Settings, kind, file=tmp_path / "settings.toml").settings
    assert settings.reports_properties_file == home.workload(f"{kind}/x/0") / "reports.properties"
    (tmp_path / "reports.properties").write_text(made.files["reports.properties"])
    found = read_client_properties("x", tmp_path / "reports.properties")
    assert found == {"sasl.jaas.config": 'x required password="a b";'}
    plain = COMMANDS[kind](Workload(name=f"{kind}/x/0", node="n1", spec=WORKLOADS[kind]), home)
    assert "reports.properties" not in plain.files


def test_toml_puts_tables_last() -> None:
    text = toml({"a": {"k.l": "v"}, "b": 3, "c": Path("/x")})
    assert tomllib.loads(text) == {"b": 3, "c": "/x", "a": {"k.l": "v"}}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Build-Host_7.example.org", "build-host_7.example.org"),
        ("ünï", "n"),
        ("-x-", "x"),
        ("", "node"),
        ("a" * 80, "a" * 63),
    ],
)
def test_a_hosts_name_becomes_a_legal_node_name(host: str, name: str) -> None:
    assert legal_name(host) == name
    assert Settings(node=name).node_name == name


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "127.0.0.1"),
        ({"host": "0.0.0.0", "advertised_address": "10.0.0.7:7420", "trust": "mesh"}, "10.0.0.7"),
        ({"advertised_address": "[fd00::7]:7420", "trust": "mesh"}, "fd00::7"),
        ({"node_address": "10.1.0.7", "trust": "mesh"}, "10.1.0.7"),
        ({"node_address": "localhost"}, "localhost"),
    ],
)
def test_workloads_are_reached_at_the_nodes_address(given: dict[str, str], address: str) -> None:
    assert Settings(**given).workload_address == address


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"advertised_address": "10.0.0.7:7420"}, "agent.advertised_address: '10.0.0.7' .* trust = mesh"),
        ({"node_address": "10.0.0.7"}, "agent.node_address: '10.0.0.7' .* trust = mesh"),
        ({"host": "0.0.0.0", "trust": "mesh"}, "agent.advertised_address: '0.0.0.0' .* other hosts reach"),
        ({"node_address": "10.0.0.7:80 x", "trust": "mesh"}, "agent.node_address: .* other hosts reach"),
        ({"advertised_address": "here"}, "agent.advertised_address: 'here' is not legal: host:port"),
    ],
)
def test_an_address_that_nobody_reaches_or_secures_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        _ = Settings(**given).workload_address


def test_a_spark_service_trusts_whom_its_agent_does_or_whom_its_own_file_says(tmp_path: Path) -> None:
    work = Workload(name="spark/n1", node="n1", spec=WORKLOADS["spark"])
    for trust in ("loopback", "mesh"):
        assert f'trust = "{trust}"' in command_table(trust)["spark"](work, Home(tmp_path)).files["settings.toml"]
    (tmp_path / "spark.toml").write_text('trust = "mesh"')
    assert 'trust = "mesh"' in command_table()["spark"](work, Home(tmp_path)).files["settings.toml"]


def test_a_given_node_name_must_be_legal() -> None:
    with pytest.raises(InvalidArgument, match=r"agent.node: 'Upper' is not legal"):
        _ = Settings(node="Upper").node_name


@pytest.mark.parametrize(
    ("end", "seen", "words"),
    [
        (Exit(1, "X", "the hold is full"), True, "the hold is full"),
        (Exit(3), True, "ended by itself with exit code 3; last line of its log: oops"),
        (Exit(-signal.SIGSEGV), True, "was ended by SIGSEGV; last line of its log: oops"),
        (
            Exit(None),
            False,
            "ended while no agent was there and left no exit record: it was killed; last line of its log: oops",
        ),
    ],
)
def test_words_about_an_end(end: Exit, seen: bool, words: str) -> None:
    assert words_of(end, "oops", seen=seen) == words


def test_one_agent_a_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with lock(home), pytest.raises(FailedPrecondition, match="another agent") as caught, lock(home):
        pass
    assert caught.value.reason == "HOME_IN_USE"
    with lock(home):
        pass
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidArgument, match=r"agent\.home"), lock(Home(file)):
        pass


async def test_what_an_agent_says_of_its_workloads_has_no_properties() -> None:
    client = {"sasl.jaas.config": "hunter2"}
    specs = (
        WorkloadSpec(worker=WorkerWorkload(properties=client, reports_client_properties=client)),
        WorkloadSpec(spark=SparkWorkload(master="local", reports_client_properties=client)),
        WorkloadSpec(broker=BrokerWorkload(properties=client)),
        WorkloadSpec(),
    )

    class Node:
        def workloads(self) -> list[Workload]:
            return [Workload(name="x", spec=spec) for spec in specs]

    answer = await AgentApi(Node()).ListLocalWorkloads(ListLocalWorkloadsRequest(), None)
    assert len(answer.workloads) == len(specs)
    assert "hunter2" not in str(answer)


def test_a_worker_gets_its_plugins_behind_its_own_and_java_workers_what_they_know(tmp_path: Path) -> None:
    home = Home(tmp_path)
    acme = PluginFile(name="acme", version="1", sha256="ab", file_name="acme.zip")
    driver = PluginFile(name="driver", version="2", sha256="cd", file_name="driver.jar")
    properties = {"plugin.path": "/opt/mine", "keelman.cpus": "2", "group.id": "g", "keelman.metrics.listeners": "x"}
    spec = WorkerWorkload(host="10.0.0.1", port=8083, properties=properties, plugins=[acme], libraries=[driver])
    made = COMMANDS["worker"](Workload(name="worker/demo/0", spec=WorkloadSpec(worker=spec)), home)
    given = javaproperties.loads(made.files["worker.properties"])
    assert given["plugin.path"] == f"/opt/mine,{tmp_path}/plugins/ab"
    assert given["keelman.plugin.libraries"] == f"{tmp_path}/plugins/cd"
    assert tomllib.loads(made.files["settings.toml"])["plugins"] == {f"{tmp_path}/plugins/ab": "acme 1"}
    assert made.files["plugins.json"] == '["ab", "cd"]'

    spec.kafka_connect, spec.metrics_port = True, 9400
    java = Workload(name="worker/demo/0", spec=WorkloadSpec(worker=spec), limits=ResourceLimits(memory_bytes=1 << 30))
    made = COMMANDS["worker"](java, home)
    assert made.command[2:4] == ("keelman.kafka_connect", "run")
    assert made.ports == (("10.0.0.1", 8083), ("10.0.0.1", 9400))
    given = javaproperties.loads(made.files["worker.properties"])
    assert given == {"group.id": "g", "plugin.path": f"/opt/mine,{tmp_path}/plugins/ab"}
    file = _written(tmp_path / "s.toml", made.files["settings.toml"])
    settings = load(ConnectSettings, "kafka_connect", environment={}, file=file).settings
    assert (settings.heap_mb, settings.url) == (614, "http://10.0.0.1:8083")
    assert settings.libraries == (f"{tmp_path}/plugins/cd",)


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file
