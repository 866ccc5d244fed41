"""Host names for one process alone: the content of its file, and no other process sees it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.runtime.processes import private_hosts
from keelman.runtime.processes.private_hosts import FAILED, HOSTS, hosts_text, with_routes

ROUTES = {"db.example": "10.9.8.7", "Six.example": "fd00::7"}
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def test_the_hosts_own_lines_stay_but_for_names_that_have_routes() -> None:
    own = "# mine\n127.0.0.1 localhost\n\n10.0.0.1\tDB.example db alias # two\n10.0.0.2 six.EXAMPLE\n"
    assert hosts_text(own, ROUTES).splitlines() == [
        "# mine", "127.0.0.1 localhost", "", "10.0.0.1 db alias", "fd00::7 Six.example", "10.9.8.7 db.example",
    ]  # fmt: skip


def run(file: Path, *command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(with_routes(command, file), capture_output=True, text=True, timeout=30, check=False, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "routes.json"
    file.write_text(json.dumps(ROUTES))
    return file


@pytest.fixture
def open_file() -> Iterator[Path]:
    """The same file, readable by every user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "routes.json"
        path.write_text(json.dumps(ROUTES))
        yield path


def possible(file: Path, **more: Any) -> None:
    tried = run(file, **more)
    if tried.returncode:
        pytest.skip(f"this host cannot: {tried.stderr}")


def test_the_command_and_what_it_starts_resolve_them_and_others_do_not(file: Path) -> None:
    possible(file)
    before = Path(HOSTS).read_text()
    script = f"getent hosts db.example six.example localhost; cat {HOSTS}"
    ran = run(file, "sh", "-c", f"sh -c '{script}'")
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()[:2]] == ["10.9.8.7", "fd00::7"]
    assert "localhost" in ran.stdout
    assert ran.stdout.endswith(hosts_text(before, ROUTES))
    assert Path(HOSTS).read_text() == before
    assert subprocess.run(["getent", "hosts", "db.example"], check=False).returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a command as somebody else")
def test_a_user_without_rights_has_them_in_a_user_namespace(open_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The interpreter and the module may lie where only their owner can read.
    copy = open_file.with_name("private_hosts.py")
    copy.write_text(Path(private_hosts.__file__).read_text())
    monkeypatch.setattr(private_hosts, "__file__", str(copy))
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    if not Path("/usr/bin/python3").exists():
        pytest.skip("no /usr/bin/python3, which everybody may run")
    possible(open_file, **NOBODY)
    ran = run(open_file, "sh", "-c", "getent hosts db.example; id -u", **NOBODY)
    assert ran.stdout.split() == ["10.9.8.7", "db.example", "65534"]


def test_a_host_that_cannot_says_why(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_hosts, "call", lambda name, *arguments: "Operation not permitted")
    with pytest.raises(private_hosts.NotPossible, match=r"needs CAP_SYS_ADMIN \(Operation not permitted\)"):
        private_hosts.enter(ROUTES)
    monkeypatch.setattr(private_hosts, "call", lambda name, *arguments: "")
    monkeypatch.setattr(private_hosts, "_mount_over", lambda target, text: None)
    with pytest.raises(private_hosts.NotPossible, match=r"does not look into /etc/hosts first: 'db.example' is not"):
        private_hosts.enter(ROUTES)
    private_hosts.enter({})


def test_a_file_that_is_none_fails_and_starts_nothing(tmp_path: Path) -> None:
    ran = run(tmp_path / "none.json", "echo", "began")
    assert (ran.returncode, ran.stdout) == (FAILED, "")
    assert "none.json" in ran.stderr
