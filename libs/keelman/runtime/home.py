"""Where a node keeps its files: one folder, one layout, known here and nowhere else."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOCKET_PATH_BYTES = 100  # the kernel's limit is 107


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one `keelman up`, or of one service on a host of its own."""

    root: Path

    @classmethod
    def default(cls) -> Home:
        """KEELMAN_HOME, else .keelman in the user's home folder."""
        return cls(Path(os.environ.get("KEELMAN_HOME") or Path.home() / ".keelman").expanduser().absolute())

    @property
    def system(self) -> Path:
        """Written by `keelman up`: addresses, pids and start times of its services, as JSON."""
        return self.root / "system.json"

    @property
    def lock(self) -> Path:
        """Held (flock) by the `keelman up` of this home while it lives."""
        return self.root / "up.lock"

    @property
    def database(self) -> Path:
        """The embedded database of the state service."""
        return self.root / "state" / "state.db"

    def log(self, service: str) -> Path:
        """Log file of a service started by `keelman up`."""
        return self.root / "logs" / f"{service}.log"

    def workload(self, name: str) -> Path:
        """Folder of one workload: settings.toml, log, data, record.json of its process."""
        return self.root / "workloads" / name.replace("/", "-")

    def socket(self, name: str) -> Path:
        """Path of a Unix socket; in a temporary folder named after this home when the home's path is too long."""
        file = f"{name.replace('/', '-')}.sock"
        path = self.root / "run" / file
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return path
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"keelman-{os.getuid()}-{digest}" / file


def cache_folder() -> Path:
    """What can be fetched again: KEELMAN_CACHE, else keelman under the user's cache folder."""
    given = os.environ.get("KEELMAN_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser().absolute() / "keelman"
