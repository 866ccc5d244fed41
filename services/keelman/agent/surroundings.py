"""What a workload's process finds around it: its environment, its folder for temporary files, its umask."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.home import private_folder
from keelman.runtime.processes.environment import clean_environment

NO_FILES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The same for all workloads of the node. `passed` are variables that they get besides the usual ones."""

    passed: tuple[str, ...] = ()
    umask: int = 0o077

    def environment(self, kind: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> dict[str, str]:
        """The environment of a workload's process with these files, or of one that does something for it."""
        said = tomllib.loads(files.get("settings.toml", ""))
        made = clean_environment(os.environ, kind, in_file=said, passed=self.passed)
        return {**made, "TMPDIR": str(temporary(folder))}

    def prepare(self, folder: Path) -> None:
        """Makes the folder of a workload that does not run, and its empty one for temporary files. Raises OSError."""
        private_folder(folder)
        shutil.rmtree(temporary(folder), ignore_errors=True)
        temporary(folder).mkdir(mode=0o700, exist_ok=True)


def temporary(folder: Path) -> Path:
    """Where the workload with this folder has its temporary files, until it is started again."""
    return folder / "tmp"
