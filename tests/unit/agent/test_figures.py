"""A host's used and free resources."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from keelman.agent.figures import Figures, busy_seconds


def test_processors_in_use_are_those_since_the_figures_before(tmp_path: Path) -> None:
    now, busy = [100.0], [50.0]
    figures = Figures(tmp_path, clock=lambda: now[0], busy=lambda: busy[0])
    now[0], busy[0] = 102.0, 53.0
    assert figures.take().cpus_used == 1.5
    # Too soon for the kernel's counters: as before.
    now[0], busy[0] = 102.01, 53.02
    assert figures.take().cpus_used == 1.5
    now[0] = 104.0
    assert figures.take().cpus_used == 0.01
    now[0], busy[0] = 106.0, 1.0
    assert figures.take().cpus_used == 0.0


def test_the_figures_are_this_hosts(tmp_path: Path) -> None:
    figures = Figures(tmp_path)
    begun = busy_seconds()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    assert busy_seconds() > begun
    taken = figures.take()
    assert 0 < taken.cpus_used <= psutil.cpu_count() + 0.5
    assert 0 < taken.memory_available_bytes <= psutil.virtual_memory().total
    stat = os.statvfs(tmp_path)
    assert 0 < taken.disk_free_bytes <= stat.f_blocks * stat.f_frsize
    assert taken.load >= 0


def test_a_home_that_is_gone_has_no_room(tmp_path: Path) -> None:
    assert Figures(tmp_path / "gone").take().disk_free_bytes == 0
