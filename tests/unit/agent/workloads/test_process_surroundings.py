"""A workload's surroundings: environment, folders, and the user that it runs as."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from keelman.agent.settings import Settings
from keelman.agent.workloads.process_surroundings import Surroundings, surroundings_for
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.home import Home, SharedHome
from keelman.runtime.processes.users import User


def test_a_workload_finds_its_own_folder_for_temporary_files_and_no_settings_that_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("PORT", "LOG_LEVEL"):
        monkeypatch.setenv(f"KEELMAN_WORKER_{key}", "x")
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setenv("SECRET_OF_SOMEBODY", "s")
    environment = Surroundings().environment("worker", tmp_path, {"settings.toml": "port = 1\n"})
    assert environment["TMPDIR"] == str(tmp_path / "tmp")
    assert environment["PATH"]
    assert {name for name in environment if name.startswith(("KEELMAN_WORKER_", "SECRET"))} == {
        "KEELMAN_WORKER_LOG_LEVEL"
    }
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
    environment = Surroundings(user=user, cache=tmp_path / "cache").environment("worker", tmp_path / "w")
    assert "XDG_CACHE_HOME" not in environment
    assert {k: environment[k] for k in ("USER", "LOGNAME", "HOME", "KEELMAN_CACHE")} == {
        "USER": "somebody", "LOGNAME": "somebody", "HOME": str(tmp_path / "w"),
        "KEELMAN_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    # Sockets of workloads are in a folder of their own; sockets of services remain in theirs.
    home, shared = Home(tmp_path), SharedHome(tmp_path)
    assert shared.socket("agent") == home.socket("agent")
    assert shared.socket("worker/a/0").parent != home.socket("worker/a/0").parent
    assert shared.workload("worker/a/0") == home.workload("worker/a/0")
    # Sockets of brokers have a folder too if a third user runs them; the others remain in theirs.
    of_brokers = SharedHome(tmp_path, workloads_apart=False, brokers_apart=True)
    assert of_brokers.socket("worker/a/0") == home.socket("worker/a/0")
    folders = {SharedHome(tmp_path, brokers_apart=True).socket(f"{kind}/a").parent for kind in ("broker", "spark")}
    assert len(folders | {home.socket("agent").parent}) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others")
def test_brokers_may_have_a_user_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEELMAN_CACHE", raising=False)

    def found(user: str, broker_user: str) -> list[tuple[str | None, str | None]]:
        surroundings = surroundings_for(user, (), 0o022, Home(tmp_path), broker_user=broker_user)
        kinds = [surroundings.of(kind) for kind in ("broker", "worker", "spark")]
        return [(kind.user.name if kind.user else None, kind.cache.name if kind.cache else None) for kind in kinds]

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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others")
@pytest.mark.parametrize("title", ["keelman state", "keelman gateway"])
def test_workloads_do_not_run_as_the_user_of_a_service(tmp_path: Path, title: str) -> None:
    apart = surroundings_for("daemon", (), 0o022, Home(tmp_path))
    shared = surroundings_for("nobody", (), 0o022, Home(tmp_path))
    shared.check_apart()
    with subprocess.Popen((title, "60"), executable="sleep", user="nobody") as service:
        try:
            apart.check_apart()
            with pytest.raises(
                FailedPrecondition, match=f"user nobody, as `{title} 60` .pid {service.pid}. does"
            ) as no:
                shared.check_apart()
            assert no.value.reason == "USER_NOT_APART"
            with pytest.raises(
                InvalidArgument, match=r"agent\.workload_user: 'nobody' is not legal: a user as whom no"
            ):
                shared.begin(Home(tmp_path))
        finally:
            service.kill()


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
