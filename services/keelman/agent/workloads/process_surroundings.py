"""Prepares the surroundings of a workload's process: its user, its environment, its folders, its umask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

import keelman
from keelman.agent.workloads.tenants import NO_HOME, TenantUsers
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.workload import ROUTES_NOT_POSSIBLE
from keelman.runtime.home import Home, SharedHome, cache_folder, passable_folder, private_folder
from keelman.runtime.processes.confined import Confinement
from keelman.runtime.processes.environment import clean_environment
from keelman.runtime.processes.private_hosts import with_routes
from keelman.runtime.processes.users import User, find_user, hand_over, users_range

NO_FILES: Mapping[str, str] = {}
OF_ANOTHER = ("HOME", "USER", "LOGNAME", "SHELL", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
TRIAL = "import os, sys; os.chdir(sys.argv[1]); os.listdir(sys.argv[2]); import keelman.runtime.home"
TRIAL_SECONDS = 60.0
WORKLOAD_USER, BROKER_USER, TENANT_USERS = "agent.workload_user", "agent.broker_user", "agent.tenant_users"
BROKER = "broker"
OWN_IMPORTS = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}
"""No Python of a workload imports from its working folder or from its home, where connectors can write."""
SERVICES = ("keelman state", "keelman gateway")
"""The titles of the processes whose files no workload may read: the key of the secrets, the CA, the access file."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The same for all workloads of the node, or for all but brokers. `passed` are variables that they get besides the
    usual ones.

    `user` is the user that they run as; None: as the agent does. `cache` is their folder for data that can be fetched
    again. `brokers` are the surroundings of brokers, where they run as a user of their own; `tenants` the users of
    tenants, where they have some. `confinement` is that of a tenant's process.
    """

    passed: tuple[str, ...] = ()
    umask: int = 0o022
    user: User | None = None
    cache: Path | None = None
    brokers: Surroundings | None = None
    tenants: TenantUsers | None = None
    confinement: Confinement | None = None

    def of(self, kind: str, tenant: str = "") -> Surroundings:
        """Returns the surroundings of workloads of this kind, of a tenant if it is given. Raises FailedPrecondition
        (NO_TENANT_USER) where the tenant cannot have a user, OSError where its cache cannot be made."""
        if kind == BROKER:
            return self if self.brokers is None else self.brokers
        if not tenant:
            return self
        if self.tenants is None:
            legal = f"set {TENANT_USERS}, or wait until the state service has learned that this node has none"
            raise FailedPrecondition(f"this node has no users for tenants: {legal}", reason="NO_TENANT_USER")
        user = self.tenants.user_of(tenant)
        return replace(self, user=user, cache=self.tenants.cache_of(user), confinement=confinement(user, self.tenants))

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group that own the files of workloads; None for the agent's own."""
        return (self.user.uid, self.user.gid) if self.user is not None else None

    @property
    def record_owner(self) -> int | None:
        """The only user who writes records of processes, where workloads could write others in their folders."""
        is_apart = self.user is not None or self.brokers is not None or self.tenants is not None
        return os.geteuid() if is_apart else None

    @property
    def popen_user(self) -> User | None:
        """The user to start a process as; None also where its confinement changes the user."""
        return None if self.confinement is not None else self.user

    def confined(self, command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
        """Returns the command line that runs a command of the workload in this folder."""
        if self.confinement is None:
            return command
        return replace(self.confinement, temporary=str(temporary(folder))).command(command)

    @property
    def as_user(self) -> Mapping[str, Any]:
        """Arguments of subprocess.Popen that make a process run as their user."""
        return self.user.popen if self.user is not None else {}

    def environment(self, kind: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> dict[str, str]:
        """Returns the environment of a workload's process with these files, or of a helper process for it."""
        said = tomllib.loads(files.get("settings.toml", ""))
        values = clean_environment(os.environ, kind, in_file=said, passed=self.passed)
        if self.user is not None:
            values = {name: value for name, value in values.items() if name not in OF_ANOTHER}
            values |= {"USER": self.user.name, "LOGNAME": self.user.name, "HOME": self._home_or(folder)}
        if self.cache is not None:
            values["KEELMAN_CACHE"] = str(self.cache)
        return {**values, "TMPDIR": str(temporary(folder)), **OWN_IMPORTS}

    def _home_or(self, folder: Path) -> str:
        return self.user.home if self.user is not None and Path(self.user.home).is_dir() else str(folder)

    def prepare(self, folder: Path, socket: Path) -> None:
        """Makes the folder of a workload that does not run, its empty one for temporary files and that of its socket.

        Raises OSError.
        """
        private_folder(folder)
        shutil.rmtree(temporary(folder), ignore_errors=True)
        temporary(folder).mkdir(mode=0o700, exist_ok=True)
        passable_folder(socket.parent.parent)
        private_folder(socket.parent)
        if self.user is not None:
            hand_over(folder, self.user)
            os.chown(temporary(folder), *(self.user.uid, self.user.gid), follow_symlinks=False)
            hand_over(socket.parent, self.user)
        socket.unlink(missing_ok=True)

    def make_folders(self, folders: Sequence[Path]) -> None:
        """Makes a workload's folders beside its own, for it alone. Raises OSError."""
        for folder in folders:
            passable_folder(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            if self.user is not None:
                hand_over(folder, self.user)

    def check_apart(self) -> None:
        """Checks that no service of the installation runs on this host as the workloads' user, if they have a user of
        their own. Raises FailedPrecondition (USER_NOT_APART)."""
        if self.user is None:
            return
        for process in psutil.process_iter(["cmdline", "uids"]):
            title, uids = " ".join(process.info["cmdline"] or ()), process.info["uids"]
            if uids is not None and self.user.uid in uids and title.startswith(SERVICES):
                raise FailedPrecondition(
                    f"workloads would run as user {self.user.name}, as `{title}` (pid {process.pid}) does: connectors "
                    f"could read its key and its database; set {WORKLOAD_USER} and {BROKER_USER} to other users",
                    reason="USER_NOT_APART",
                )

    def check_routes(self, folder: Path, routes: Path) -> None:
        """Checks that a workload of this folder can have the routes of a file.

        Raises FailedPrecondition (ROUTES_NOT_POSSIBLE) with the obstacle.
        """
        try:
            tried = subprocess.run(
                with_routes((), routes), cwd=folder, env=self.environment("", folder), capture_output=True, text=True,
                check=False, timeout=TRIAL_SECONDS, **self.as_user,
            )  # fmt: skip
        except subprocess.SubprocessError as error:
            problem = str(error)
        else:
            problem = tried.stderr.strip().rpartition("\n")[2] or "no reason" if tried.returncode else ""
        if problem:
            raise FailedPrecondition(
                f"this host cannot give it its routes (names of hosts for it alone): {problem}",
                reason=ROUTES_NOT_POSSIBLE,
            )

    def begin(self, home: Home) -> Home:
        """Checks that workloads can run as their users in this home, and returns the home with the layout that this
        needs.

        Raises InvalidArgument with the obstacle.
        """
        self._try(home, WORKLOAD_USER)
        if self.brokers is not None:
            self.brokers._try(home, BROKER_USER)
        if self.tenants is not None:
            self._try_tenants(home, self.tenants)
        if self.user is None and self.brokers is None and self.tenants is None:
            return home
        return SharedHome(
            home.root, workloads_apart=self.user is not None, brokers_apart=self.brokers is not None,
            tenants_apart=self.tenants is not None,
        )  # fmt: skip

    def _try_tenants(self, home: Home, tenants: TenantUsers) -> None:
        """Runs a process as the user of a tenant that cannot exist. Raises InvalidArgument with the obstacle."""
        uid = tenants.numbers[-1]
        user = User(f"keelman-{uid}", uid, uid, (), NO_HOME)
        home.workloads.mkdir(parents=True, exist_ok=True)
        home.workloads.chmod(0o711)
        with tempfile.TemporaryDirectory(dir=home.workloads) as name:
            folder = Path(name)
            temporary(folder).mkdir()
            hand_over(folder, user)
            own = replace(self, user=user, cache=folder, confinement=confinement(user, tenants))
            _check_trial(own, (sys.executable, "-P", "-c", TRIAL, str(folder), str(folder)), folder, TENANT_USERS)

    def _try(self, home: Home, setting: str) -> None:
        if self.user is None:
            return
        try:
            self.check_apart()
        except FailedPrecondition as error:
            legal = f"a user as whom no service of the installation runs ({error.message})"
            raise InvalidArgument.of(setting, self.user.name, legal) from None
        for folder in (home.workloads, self.cache):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        if self.cache is not None and self.cache in own_caches(home):
            hand_over(self.cache, self.user)
        if home.workloads.stat().st_uid == os.geteuid():
            home.workloads.chmod(0o711)
        command = (sys.executable, "-P", "-c", TRIAL, str(home.workloads), str(self.cache or home.workloads.parent))
        _check_trial(self, command, home.workloads, setting)


def _check_trial(surroundings: Surroundings, command: tuple[str, ...], folder: Path, setting: str) -> None:
    """Runs a trial as a process of a workload would run. Raises InvalidArgument naming the setting of its user."""
    user = surroundings.popen_user
    try:
        tried = subprocess.run(
            surroundings.confined(command, folder), cwd="/", env=surroundings.environment("", folder),
            capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS, **(user.popen if user else {}),
        )  # fmt: skip
        problem = tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""
    except (OSError, subprocess.SubprocessError) as error:
        problem = str(error)
    if problem and surroundings.user is not None:
        legal = f"a user who can run {sys.executable}, enter {folder} and read {surroundings.cache} ({problem})"
        raise InvalidArgument.of(setting, surroundings.user.name, legal)


def surroundings_for(
    user: str, passed: tuple[str, ...], umask: int, home: Home, *, broker_user: str = "", tenant_users: str = ""
) -> Surroundings:
    """Returns the surroundings of this home's workloads, by the operator's settings; without a `broker_user` brokers
    have the same as all others. Raises InvalidArgument."""
    cache, cache_of_brokers = own_caches(home)
    surroundings = _surroundings(WORKLOAD_USER, user, passed, umask, cache)
    if tenant_users:
        if os.geteuid() != 0:
            raise InvalidArgument.of(TENANT_USERS, tenant_users, "empty, unless the agent runs as root")
        shared = cache_folder() if "KEELMAN_CACHE" in os.environ else cache
        surroundings = replace(surroundings, tenants=TenantUsers(users_range(TENANT_USERS, tenant_users), home, shared))
    if not broker_user:
        return surroundings
    brokers = _surroundings(BROKER_USER, broker_user, passed, umask, cache_of_brokers)
    return surroundings if brokers.user == surroundings.user else replace(surroundings, brokers=brokers)


def _surroundings(setting: str, user: str, passed: tuple[str, ...], umask: int, cache: Path) -> Surroundings:
    account = find_user(setting, user) if user else None
    if account is None or account.uid == os.geteuid():
        return Surroundings(passed, umask)
    if os.geteuid() != 0:
        raise InvalidArgument.of(setting, user, "empty, unless the agent runs as root")
    return Surroundings(passed, umask, account, cache_folder() if "KEELMAN_CACHE" in os.environ else cache)


def confinement(user: User, tenants: TenantUsers) -> Confinement:
    """Returns the confinement of a tenant's processes, but for the folder of their temporary files."""
    home = tenants.home
    hidden = (home.database.parent, home.root / "trust", home.agent_lock.parent, home.root / "logs", home.broker_data)
    packages = (Path(folder).parent for folder in keelman.__path__)  # in a checkout there are two
    kept = (home.root, tenants.cache, Path(sys.prefix), Path(sys.base_prefix), *packages)
    return Confinement(user.name, user.uid, user.gid, "", tuple(map(str, hidden)), tuple(map(str, kept)))


def own_caches(home: Home) -> tuple[Path, Path]:
    """Returns the caches of workloads that run as users of their own, who cannot read the agent's nor each other's: the
    cache of all but brokers, and that of brokers."""
    return home.root / "cache", home.root / "cache-of-brokers"


def temporary(folder: Path) -> Path:
    """Returns the folder of the workload's temporary files, which are kept until it is started again."""
    return folder / "tmp"
