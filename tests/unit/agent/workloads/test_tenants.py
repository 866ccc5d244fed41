"""The users of tenants."""

import json
import os
from pathlib import Path

import pytest

import keelman
from keelman.agent.workloads.process_surroundings import confinement, surroundings_for
from keelman.agent.workloads.tenants import TenantUsers
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.home import Home, SharedHome, passable_folder

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
NUMBERS = range(600_000, 600_003)


def users(folder: Path, numbers: range = NUMBERS) -> TenantUsers:
    return TenantUsers(numbers, Home(folder), folder / "cache")


def test_a_tenant_keeps_its_user_over_restarts(tmp_path: Path) -> None:
    first = users(tmp_path)
    a, b = first.user_of("a"), first.user_of("b")
    assert (a.uid, a.gid, a.groups, b.uid) == (600_000, 600_000, (), 600_001)
    again = users(tmp_path)
    assert (again.user_of("b"), again.user_of("c").uid, again.user_of("a")) == (b, 600_002, a)
    assert json.loads(Home(tmp_path).tenants.read_bytes()) == {"a": 600_000, "b": 600_001, "c": 600_002}


def test_without_a_user_left_a_tenant_is_refused(tmp_path: Path) -> None:
    few = users(tmp_path, range(600_000, 600_001))
    few.user_of("a")
    with pytest.raises(FailedPrecondition, match=r"no user is left for tenant b: .* 1 numbers") as refused:
        few.user_of("b")
    assert refused.value.reason == "NO_TENANT_USER"


def test_numbers_of_accounts_are_passed_over(tmp_path: Path) -> None:
    assert users(tmp_path, range(600_001)).user_of("a").uid != 0


def test_a_tenant_gets_another_user_where_its_own_left_the_numbers(tmp_path: Path) -> None:
    users(tmp_path).user_of("a")
    assert users(tmp_path, range(700_000, 700_010)).user_of("a").uid == 700_000


@as_root
def test_the_cache_of_a_tenant_is_its_own_and_has_links_to_shared_files(tmp_path: Path) -> None:
    (tmp_path / "cache" / "jars" / "kafka").mkdir(parents=True)
    (tmp_path / "cache" / "plugins" / "mine").mkdir(parents=True)
    given = users(tmp_path)
    user = given.user_of("a")
    for _ in range(2):
        folder = given.cache_of(user)
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (user.uid, 0o700)
    assert (folder / "jars" / "kafka").is_symlink()
    assert not (folder / "plugins").exists()


@as_root
def test_root_follows_no_link_that_a_tenant_puts_into_its_cache(tmp_path: Path) -> None:
    (tmp_path / "cache" / "jars" / "kafka").mkdir(parents=True)
    given = users(tmp_path)
    user = given.user_of("a")
    jars, target = given.cache_of(user) / "jars", tmp_path / "target"
    target.mkdir(mode=0o755)
    target.chmod(0o755)
    jars.rename(jars.with_name("aside"))
    jars.symlink_to(target)
    given.cache_of(user)
    assert (target.stat().st_mode & 0o777, list(target.iterdir())) == (0o755, [])


@as_root
def test_folders_on_the_way_to_those_of_tenants_can_be_passed_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    home = SharedHome(tmp_path / "home", tenants_apart=True)
    own = surroundings_for("", (), 0o022, home, tenant_users="600000-600015")
    before = os.umask(0o077)
    try:
        home.root.mkdir(mode=0o711)
        home.root.chmod(0o711)
        passable_folder(home.workloads)
        of_a = own.of("worker", "a")
        of_a.prepare(home.workload("worker/a/0"), home.socket("worker/a/0"))
        of_a.make_folders([home.root / "data" / "a"])
    finally:
        os.umask(before)
    for folder in (home.workload("worker/a/0"), home.socket("worker/a/0").parent, home.root / "data" / "a", of_a.cache):
        assert folder is not None
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (600_000, 0o700)
        assert folder.parent.stat().st_mode & 0o777 == 0o711, folder


@as_root
def test_workloads_of_a_tenant_run_confined_and_brokers_do_not(tmp_path: Path) -> None:
    surroundings = surroundings_for("", (), 0o022, Home(tmp_path), tenant_users="600000-600015")
    own = surroundings.of("worker", "a")
    assert (own.owner, own.popen_user) == ((600_000, 600_000), None)
    assert own.confined(("run",), tmp_path)[-1] == "run"
    plan = json.loads(own.confined(("run",), tmp_path)[-2])
    assert (plan["uid"], plan["temporary"]) == (600_000, str(tmp_path / "tmp"))
    assert str(tmp_path / "state") in plan["hidden"]
    assert surroundings.of("broker", "") is surroundings
    assert surroundings.record_owner == 0
    assert own.environment("worker", tmp_path)["KEELMAN_CACHE"].endswith("/600000")


def test_a_tenant_is_refused_where_the_node_has_no_users_for_tenants(tmp_path: Path) -> None:
    surroundings = surroundings_for("", (), 0o022, Home(tmp_path))
    with pytest.raises(FailedPrecondition, match="this node has no users for tenants") as refused:
        surroundings.of("worker", "a")
    assert refused.value.reason == "NO_TENANT_USER"


@pytest.mark.parametrize(
    "text", ["600000", "0-10", "10-20", "600001-600000", "600000-9999999999", "a-b", "600000 - 600001"]
)
def test_numbers_that_are_not_legal(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"agent\.tenant_users"):
        surroundings_for("", (), 0o022, Home(tmp_path), tenant_users=text)


def test_the_home_and_the_programs_are_kept_below_a_tmp_of_its_own(tmp_path: Path) -> None:
    given = users(tmp_path)
    plan = confinement(given.user_of("a"), given)
    assert str(tmp_path) in plan.kept
    assert all(Path(path).is_absolute() for path in (*plan.kept, *plan.hidden))
    assert all(str(Path(folder).parent) in plan.kept for folder in keelman.__path__)
