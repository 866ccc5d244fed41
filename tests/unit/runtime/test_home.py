"""The layout of a home folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.runtime.home import SOCKET_PATH_BYTES, Home, cache_folder, leave_sockets, private_folder, writable


def test_the_environment_names_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEELMAN_HOME", str(tmp_path / "h"))
    assert Home.default().root == tmp_path / "h"
    monkeypatch.setenv("KEELMAN_HOME", "relative")
    assert Home.default().root == Path.cwd() / "relative"
    monkeypatch.delenv("KEELMAN_HOME")
    assert Home.default().root == Path.home() / ".keelman"


def test_each_workload_has_a_folder_of_its_own() -> None:
    home = Home(Path("/h"))
    names = ["worker/a-0/1", "worker/a/0", "broker/a/0", "spark/a-0"]
    folders = [home.workload(n) for n in names]
    assert len(set(folders)) == len(names)
    assert all(f.parent == Path("/h/workloads") for f in folders)


def test_a_sockets_path_fits_the_kernel(tmp_path: Path) -> None:
    assert Home(Path("/h")).socket("worker/demo/0") == Path("/h/run/worker-demo-0.sock")
    deep = Home(tmp_path / ("d" * 120))
    paths = {
        deep.socket(n) for n in ("worker/demo/0", "worker/demo/1", f"worker/{'c' * 63}/10", f"worker/{'c' * 62}/10")
    }
    assert len(paths) == 4
    assert all(len(os.fsencode(p)) <= SOCKET_PATH_BYTES for p in paths)
    assert Home(tmp_path / ("e" * 120)).socket("worker/demo/0") not in paths
    assert deep.socket("worker/demo/0") == deep.socket("worker/demo/0")


def test_a_temporary_folder_of_sockets_goes_with_its_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    deep = Home(Path("/h") / ("d" * 120))
    first, second = deep.socket("agent"), deep.socket("worker/demo/0")
    folder = first.parent
    assert folder == second.parent
    assert folder.parent == tmp_path
    folder.mkdir()
    first.touch()
    leave_sockets(folder)
    assert first.exists()
    first.unlink()
    leave_sockets(folder)
    assert not folder.exists()
    (tmp_path / "run").mkdir()
    leave_sockets(tmp_path / "run")
    assert (tmp_path / "run").exists(), "a folder of another user"


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("KEELMAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "keelman"


def test_a_folder_is_made_and_left_as_it_was(tmp_path: Path) -> None:
    writable("demo.home", tmp_path / "a" / "b", private=True)
    writable("demo.home", tmp_path / "a" / "c", tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "c").stat().st_mode & 0o777 != 0o700
    assert not list((tmp_path / "a" / "b").iterdir())


def test_what_is_in_the_way_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidArgument) as caught:
            writable("demo.home", tmp_path, folder)
        reason = f"a writable folder ({tmp_path / 'file'} is a file)"
        assert caught.value.message == f"demo.home: {str(folder)!r} is not legal: {reason}"


def test_a_private_folder_is_closed_to_others_also_when_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "inner"
    private_folder(folder)
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o755)
    folder.chmod(0o755)
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
