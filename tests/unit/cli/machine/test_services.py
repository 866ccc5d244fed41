"""The services of `keelman up` and their ports."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from keelman.broker.settings import Settings as BrokerSettings
from keelman.cli.demo import copying
from keelman.cli.machine import up
from keelman.cli.machine.detached import arguments_of, environment_of
from keelman.cli.machine.options import UpOptions
from keelman.cli.machine.services import check_ports, child_environment, free_settings, make_plans
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.home import Home
from keelman.runtime.settings import load
from keelman.state.settings import Settings


def test_free_ports_stay_those_of_the_home(tmp_path: Path) -> None:
    home, lines = Home(tmp_path), list[str]()
    settings = free_settings(home, lines.append)
    assert free_settings(home, lines.append) == settings
    assert lines == []
    plans = make_plans(home, settings, environment={})
    ports = [port for plan in plans.values() for *_, port in plan.ports]
    assert len(set(ports)) == len(ports) == 4
    assert plans["agent"].settings.state_address == plans["state"].address
    check_ports(plans)


def test_each_wait_for_brokers_covers_a_start_that_was_too_slow_and_the_next() -> None:
    """A start that takes longer than its limit is followed by one with twice the limit."""
    first = BrokerSettings.__dataclass_fields__["start_seconds"].default
    assert copying.CLUSTER_SECONDS >= up.BROKER_SECONDS >= 3 * first


def test_only_the_process_that_runs_the_system_takes_ports(tmp_path: Path) -> None:
    """Ports held by another process (`up --detach`, a second `up`) would make the running system choose others."""
    home = Home(tmp_path / "home")
    UpOptions.of(home.root, [], free_ports=True, broker=False)
    assert not home.root.exists()


def test_when_a_kept_port_is_taken_the_new_ones_are_told(tmp_path: Path) -> None:
    home, lines = Home(tmp_path), list[str]()
    port = int(free_settings(home, lines.append)["gateway"]["port"])
    with socket.create_server(("127.0.0.1", port)):
        settings = free_settings(home, lines.append)
    (note,) = lines
    assert note.startswith(f"port {port} is taken by another process: this home, which had ")
    assert note.endswith(" now")
    assert f"has ports {settings['state']['port']} to " in note
    assert free_settings(home, lines.append) == settings, "the new ones are kept"
    assert len(lines) == 1


def test_a_taken_port_is_named_with_the_flag_that_gives_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = free_settings(Home(tmp_path), print)
        settings["gateway"]["http_port"] = str(port)
        plans = make_plans(Home(tmp_path), settings, environment={})
        with pytest.raises(Unavailable, match=f"gateway.http_port: {port} .* --http-port or KEELMAN_GATEWAY_HTTP_PORT"):
            check_ports(plans)


def test_a_port_given_twice_is_refused_before_anything_starts(tmp_path: Path) -> None:
    settings = free_settings(Home(tmp_path), print)
    settings["gateway"]["http_port"] = settings["gateway"]["port"]
    plans = make_plans(Home(tmp_path), settings, environment={})
    with pytest.raises(InvalidArgument, match=r"gateway.http_port: .* than gateway.port's \(--http-port\)"):
        check_ports(plans)


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_secret_setting_stands_in_a_file_of_the_home_alone(tmp_path: Path, *, by_flag: bool) -> None:
    url = "postgresql://me:pa55-\"word'@host/db"
    value = {"state": {"database": url}} if by_flag else {}
    environment = {
        "KEELMAN_STATE_DATABASE": url,
        "KEELMAN_WORKER_PROPERTIES": url,
        "KEELMAN_STATE_PORT": "7411",
        "A": "b",
    }
    plans = make_plans(Home(tmp_path), value, environment=environment)
    for plan in plans.values():
        plan.write_secrets()
    assert "pa55" not in " ".join(word for plan in plans.values() for word in plan.command)
    assert child_environment(environment) == {"KEELMAN_STATE_PORT": "7411", "A": "b"}
    file = tmp_path / "state" / "secrets.toml"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert plans["state"].command[4:6] == ["--file", str(file)]
    assert load(Settings, "state", file=file).settings.database == url
    assert not (tmp_path / "gateway").exists()
    make_plans(Home(tmp_path), {}, environment={})["state"].write_secrets()
    assert not file.exists()


def test_a_detached_system_has_no_secret_setting_on_its_command_line(tmp_path: Path) -> None:
    url = "postgresql://me:pa55-word@host/db"
    options = UpOptions.of(tmp_path, [f"state.database={url}", "state.worker_ports=1-9"])
    assert list(arguments_of(options)) == ["--home", str(tmp_path), "--set", "state.worker_ports=1-9"]
    assert environment_of(options) == {"KEELMAN_STATE_DATABASE": url}


@pytest.mark.parametrize(
    ("gateway", "policy"),
    [
        ({}, "auto"),
        ({"host": "0.0.0.0", "open_access": "true"}, "strict"),
        ({"http_host": "10.0.0.1", "open_access": "true"}, "strict"),
        ({"access_file": "/access.toml"}, "strict"),
        ({"managed_connect_access_file": "/access.toml"}, "strict"),
    ],
)
def test_where_callers_are_told_apart_the_policy_for_connectors_is_strict(
    tmp_path: Path, gateway: dict[str, str], policy: str
) -> None:
    plan = make_plans(Home(tmp_path), {"gateway": gateway}, environment={})["state"]
    assert plan.settings.connector_policy == policy
    assert plan.flags.get("connector_policy", "auto") == policy
    given = {"gateway": gateway, "state": {"connector_policy": "open"}}
    assert make_plans(Home(tmp_path), given, environment={})["state"].settings.connector_policy == "open"


def test_state_and_gateway_reach_workers_in_the_same_way(tmp_path: Path) -> None:
    fields = {"gateway": {"worker_ca": "/ca.pem", "worker_user": "alice"}, "state": {"worker_user": "bob"}}
    environment = {"KEELMAN_GATEWAY_WORKER_PASSWORD_FILE": "/secret", "KEELMAN_STATE_WORKER_USERS_FILE": "/users"}
    plans = make_plans(Home(tmp_path), fields, environment=environment)
    for name, user in (("gateway", "alice"), ("state", "bob")):
        settings = plans[name].settings
        assert (str(settings.worker_ca), settings.worker_user) == ("/ca.pem", user)
        assert (str(settings.worker_password_file), str(settings.worker_users_file)) == ("/secret", "/users")
    assert "worker_ca" not in plans["agent"].flags
