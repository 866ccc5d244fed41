"""What a workload's process finds around it: its user, its environment, its folders, its umask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.workload import ROUTES_NOT_POSSIBLE
from keelman.runtime.home import Home, SharedHome, cache_folder, private_folder
from keelman.runtime.processes.environment import clean_environment
from keelman.runtime.processes.private_hosts import with_routes
from keelman.runtime.processes.users import User, find_user, hand_over

NO_FILES: Mapping[str, str] = {}
OF_ANOTHER = ("HOME", "USER", "LOGNAME", "SHELL", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
TRIAL = "import os, sys; os.chdir(sys.argv[1]); os.listdir(sys.argv[2]); import keelman.runtime.home"
TRIAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The same for all workloads of the node. `passed` are variables that they get besides the usual ones.

    `user` is whom they run as; None: as the agent does. `cache` is where they keep what can be fetched again.
    """

    passed: tuple[str, ...] = ()
    umask: int = 0o022
    user: User | None = None
    cache: Path | None = None

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group that files of workloads are given to; None for the agent's own."""
        return (self.user.uid, self.user.gid) if self.user is not None else None

    @property
    def keeper(self) -> int | None:
        """Who alone writes records of processes, where workloads could write others in their folders."""
        return os.geteuid() if self.user is not None else None

    def environment(self, kind: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> dict[str, str]:
        """The environment of a workload's process with these files, or of one that does something for it."""
        said = tomllib.loads(files.get("settings.toml", ""))
        made = clean_environment(os.environ, kind, in_file=said, passed=self.passed)
        if self.user is not None:
            made = {name: value for name, value in made.items() if name not in OF_ANOTHER}
            made |= {"USER": self.user.name, "LOGNAME": self.user.name, "HOME": self._home_or(folder)}
        if self.cache is not None:
            made["KEELMAN_CACHE"] = str(self.cache)
        return {**made, "TMPDIR": str(temporary(folder))}

    def _home_or(self, folder: Path) -> str:
        return self.user.home if self.user is not None and Path(self.user.home).is_dir() else str(folder)

    def prepare(self, folder: Path, socket: Path) -> None:
        """Makes the folder of a workload that does not run, its empty one for temporary files and that of its socket.

        Raises OSError.
        """
        private_folder(folder)
        shutil.rmtree(temporary(folder), ignore_errors=True)
        temporary(folder).mkdir(mode=0o700, exist_ok=True)
        private_folder(socket.parent)
        if self.user is not None:
            hand_over(folder, self.user)
            os.chown(temporary(folder), *(self.user.uid, self.user.gid), follow_symlinks=False)
            hand_over(socket.parent, self.user)
        socket.unlink(missing_ok=True)

    def check_routes(self, folder: Path, routes: Path) -> None:
        """Sees that a workload of this folder can have the routes of a file.

        Raises FailedPrecondition (ROUTES_NOT_POSSIBLE) with what is in the way.
        """
        try:
            tried = subprocess.run(
                with_routes((), routes), cwd=folder, env=self.environment("", folder), capture_output=True, text=True,
                check=False, timeout=TRIAL_SECONDS, **(self.user.popen if self.user is not None else {}),
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
        """Sees that workloads can run as their user in this home, and returns it as that has to be laid out for them.

        Raises InvalidArgument with what is in the way.
        """
        if self.user is None:
            return home
        for folder in (home.workloads, self.cache):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        if self.cache is not None and self.cache == own_cache(home):
            hand_over(self.cache, self.user)
        if home.workloads.stat().st_uid == os.geteuid():
            home.workloads.chmod(0o711)
        command = (sys.executable, "-c", TRIAL, str(home.workloads), str(self.cache or home.workloads.parent))
        try:
            tried = subprocess.run(
                command, cwd="/", env=self.environment("", home.workloads), capture_output=True, text=True, check=False,
                timeout=TRIAL_SECONDS, **self.user.popen,
            )  # fmt: skip
            problem = tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""
        except (OSError, subprocess.SubprocessError) as error:
            problem = str(error)
        if problem:
            legal = f"a user who can run {sys.executable}, enter {home.workloads} and read {self.cache} ({problem})"
            raise InvalidArgument.of("agent.workload_user", self.user.name, legal)
        return SharedHome(home.root)


def surroundings_for(user: str, passed: tuple[str, ...], umask: int, home: Home) -> Surroundings:
    """What workloads of this home find, as the node's operator wants it. Raises InvalidArgument."""
    if not user:
        return Surroundings(passed, umask)
    found = find_user("agent.workload_user", user)
    if found.uid == os.geteuid():
        return Surroundings(passed, umask)
    if os.geteuid() != 0:
        raise InvalidArgument.of("agent.workload_user", user, "empty, unless the agent runs as root")
    given = "KEELMAN_CACHE" in os.environ
    return Surroundings(passed, umask, found, cache_folder() if given else own_cache(home))


def own_cache(home: Home) -> Path:
    """The cache of workloads that run as a user of their own, who cannot read the agent's."""
    return home.root / "cache"


def temporary(folder: Path) -> Path:
    """Where the workload with this folder has its temporary files, until it is started again."""
    return folder / "tmp"
