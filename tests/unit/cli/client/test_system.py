"""The file that a running system writes about itself, and how the gateway is found by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keelman.cli.client.system import Process, System, SystemService, read_system, running_system
from keelman.cli.client.target import place_of
from keelman.runtime.home import Home


def system_of(home: Home, process: Process) -> System:
    services = [SystemService("state", "127.0.0.1:2", "log", process)]
    return System(process, str(home.root), "n", "127.0.0.1:1", "http://x", "127.0.0.1:2", "127.0.0.1:3", True, services)


def test_the_gateway_is_looked_up_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    monkeypatch.delenv("KEELMAN_GATEWAY", raising=False)
    place = place_of(None, None, tmp_path)
    assert (place.address, place.source) == ("127.0.0.1:7400", "default")
    system_of(home, Process.of(os.getpid())).write(home)
    assert place_of(None, None, tmp_path).address == "127.0.0.1:1"
    monkeypatch.setenv("KEELMAN_GATEWAY", "there:2")
    assert place_of(None, None, tmp_path).address == "there:2"
    assert place_of("here:3", None, tmp_path).address == "here:3"


def test_a_system_file_of_a_process_that_is_gone_names_no_gateway(tmp_path: Path) -> None:
    home = Home(tmp_path)
    written = system_of(home, Process(os.getpid(), "another start"))
    written.write(home)
    assert read_system(home) == written
    assert running_system(home) is None
    home.system.write_text("{")
    assert read_system(home) is None
