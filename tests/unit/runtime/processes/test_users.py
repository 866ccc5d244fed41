"""Users that processes run as, and files that are handed to them."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.runtime.processes import children
from keelman.runtime.processes.children import ChildRecord
from keelman.runtime.processes.users import User, find_user, hand_over, open_for

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
SOMEBODY = User("somebody", 61234, 61235, (61235,), "/nonexistent")


def owner(path: Path) -> tuple[int, int]:
    lstat = path.lstat()
    return lstat.st_uid, lstat.st_gid


def test_a_user_is_found_by_name_and_number() -> None:
    me = pwd.getpwuid(os.getuid())
    user = find_user("agent.workload_user", me.pw_name)
    assert user == find_user("agent.workload_user", str(me.pw_uid))
    assert (user.uid, user.gid, user.home) == (me.pw_uid, me.pw_gid, me.pw_dir)
    for name in ("no such user", "4294967294", "99999999999999999999"):
        with pytest.raises(InvalidArgument, match=r"agent.workload_user: .* is not legal: a user of this system"):
            find_user("agent.workload_user", name)


@as_root
def test_a_folder_is_handed_over_with_all_that_is_in_it_and_no_link_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "w", tmp_path / "elsewhere"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "deep" / "file").touch()
    elsewhere.touch()
    (folder / "link").symlink_to(elsewhere)
    (folder / "data" / "up").symlink_to(tmp_path)
    hand_over(folder, SOMEBODY)
    for path in (folder, *folder.rglob("*")):
        assert owner(path) == (61234, 61235), path
    assert owner(elsewhere) == owner(tmp_path) == (0, 0)
    # A folder that is theirs already is left alone, with any content.
    (folder / "roots").touch()
    hand_over(folder, SOMEBODY)
    assert owner(folder / "roots") == (0, 0)


@as_root
def test_a_log_is_the_users_and_no_link_in_its_place_is_opened(tmp_path: Path) -> None:
    os.close(open_for(SOMEBODY, tmp_path / "log"))
    assert owner(tmp_path / "log") == (61234, 61235)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    secret = tmp_path / "secret"
    secret.touch()
    (tmp_path / "symbolic").symlink_to(secret)
    (tmp_path / "hard").hardlink_to(secret)
    for name in ("symbolic", "hard"):
        with pytest.raises(OSError, match=r"symbolic link|not a regular file"):
            open_for(SOMEBODY, tmp_path / name)
    assert owner(secret) == (0, 0)


@as_root
def test_a_record_that_a_workload_wrote_itself_is_not_believed(tmp_path: Path) -> None:
    children.write_record(tmp_path, ChildRecord("w/x/0", "u", 1, 0, (), pid=os.getpid(), start="s"))
    assert children.read_record(tmp_path, owner=0) is not None
    os.chown(tmp_path / "record.json", 61234, 61235)
    assert children.read_record(tmp_path, owner=0) is None
    assert children.adopt(tmp_path, owner=0) is None
    assert children.read_record(tmp_path) is not None
    (tmp_path / "record.json").rename(tmp_path / "elsewhere")
    (tmp_path / "record.json").symlink_to("elsewhere")
    assert children.read_record(tmp_path) is None


@as_root
def test_a_process_is_that_user_and_nothing_else() -> None:
    code = "import os; print(os.getresuid(), os.getresgid(), os.getgroups())"
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    done = subprocess.run([python, "-S", "-c", code], capture_output=True, text=True, check=True, **SOMEBODY.popen)
    assert done.stdout.strip() == "(61234, 61234, 61234) (61235, 61235, 61235) [61235]"
