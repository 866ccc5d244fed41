"""The layout of a node's files: one folder, one layout, and how files are written there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keelman.model.errors import InvalidArgument

SOCKET_PATH_BYTES = 100  # the kernel's limit is 107


class Under:
    """A fixed path under the root of its owner."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, folder: Any, owner: type) -> Path:
        path: Path = folder.root.joinpath(*self._parts)
        return path


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one `keelman up`, or of one service on a host of its own."""

    root: Path

    @classmethod
    def of(cls, folder: Path | None) -> Home:
        """Returns the folder of a setting, absolute; the default if it is unset."""
        return cls.default() if folder is None else cls(folder.expanduser().absolute())

    @classmethod
    def default(cls) -> Home:
        """Returns KEELMAN_HOME, else .keelman in the user's home folder."""
        return cls(Path(os.environ.get("KEELMAN_HOME") or Path.home() / ".keelman").expanduser().absolute())

    system = Under("system.json")
    """Written by `keelman up`: addresses, pids and start times of its services, as JSON."""
    lock = Under("up.lock")
    """Held (flock) by the `keelman up` of this home while it lives."""
    database = Under("state", "state.db")
    """The embedded database of the state service."""
    secrets_key = Under("state", "secrets.key")
    """The key by which the state service seals passwords in its database."""
    authority = Under("state", "ca.pem")
    """The certificate of the installation's CA, for clients that must trust it."""
    plugin_store = Under("plugin-store")
    """A folder for each bucket that plugins are imported from, if no other place is set."""
    uploads = Under("state", "uploads")
    """Nameless files of the state service, while a plugin arrives and is inspected."""
    agent_lock = Under("agent", "agent.lock")
    """Held (flock) by the agent of this home while it lives."""
    assignments = Under("agent", "assignments.json")
    """The agent's last orders, so that it continues without the state service."""
    tenants = Under("agent", "tenants.json")
    """The numbers of the users that the node's tenants have."""
    tenant_caches = Under("caches-of-tenants")
    """Parent of the caches of the node's tenants."""
    workloads = Under("workloads")
    """Parent of the workloads' folders."""
    broker_data = Under("broker-data")
    """Parent of the brokers' data folders, unless the agent's settings name another."""
    cluster_data = Under("data")
    """Parent of the worker clusters' data folders, in which their connectors may name files."""
    log_delivery = Under("log-delivery")
    """The folder for logs that are delivered to files, unless the agent's settings name another."""
    plugins = Under("plugins")
    """Parent of the unpacked plugins of the node's workers."""

    def member(self, kind: str) -> Path:
        """Returns the folder of this host's certificate as a node or a gateway."""
        return self.root / "trust" / kind

    def settings_file(self, service: str) -> Path:
        """Returns the settings file that a service which keeps its files here reads if it is given no other: written by
        the join, and extended by its operator."""
        return self.root / f"{service}.toml"

    def plugin(self, digest: str) -> Path:
        """Returns the folder of one unpacked plugin, by the sha256 of its file."""
        return self.plugins / digest

    def data(self, cluster: str) -> Path:
        """Returns the data folder of a worker cluster on this node. It stays when the cluster is deleted."""
        return self.cluster_data / cluster

    def log(self, service: str) -> Path:
        """Returns the log file of a service started by `keelman up`."""
        return self.root / "logs" / f"{service}.log"

    def workload(self, name: str) -> Path:
        """Returns the folder of one workload: settings.toml, log, data, record.json of its process."""
        return self.workloads / name.replace("/", "-")

    def socket(self, name: str) -> Path:
        """Returns the path of a Unix socket; in a temporary folder named after this home if the home's path is too
        long."""
        return self._socket("run", f"{name.replace('/', '-')}.sock")

    def _socket(self, folder: str, file: str, aside: Path | None = None) -> Path:
        path = self.root / folder / file
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return path
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        parent = aside or Path(tempfile.gettempdir())
        path = parent / f"keelman-{os.getuid()}-{digest}{folder.removeprefix('run')}" / file
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            path = path.with_name(hashlib.sha256(file.encode()).hexdigest()[:12] + ".sock")
        return path


def leave_sockets(folder: Path) -> None:
    """Removes a temporary folder of sockets, as named by `Home.socket`, once it is empty."""
    if folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith(f"keelman-{os.getuid()}-"):
        with contextlib.suppress(OSError):  # others have sockets in it
            folder.rmdir()


@dataclass(frozen=True, slots=True)
class SharedHome(Home):
    """A home in which workloads, or brokers, run as a user of their own: their sockets are in a folder of that
    user's. Where tenants have users of their own, each workload but a broker has a folder for its socket."""

    workloads_apart: bool = True
    brokers_apart: bool = False
    tenants_apart: bool = False

    def socket(self, name: str) -> Path:
        """Returns the path of a Unix socket; a workload's, with a kind and a name, is apart from those of services."""
        file = f"{name.replace('/', '-')}.sock"
        if self.brokers_apart and name.startswith("broker/"):
            return self._socket("run-of-brokers", file)
        if self.tenants_apart and "/" in name and not name.startswith("broker/"):
            folder = f"run-of-workloads/{name.replace('/', '-')}"
            return self._socket(folder, "s", Path("/run"))  # a tenant has a /tmp of its own
        if self.workloads_apart and "/" in name:
            return self._socket("run-of-workloads", file)
        return self._socket("run", file)


def writable(setting: str, *folders: Path, private: bool = False) -> None:
    """Creates missing folders, and checks that files can be created there: unusable folders are better refused at the
    start. Nothing is written, so that a process starts again on a full disk.

    Raises InvalidArgument naming the setting of the folder, the folder and the obstacle.
    """
    for folder in folders:
        try:
            folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
            descriptor, file = tempfile.mkstemp(prefix=".try.", dir=folder)
            os.close(descriptor)
            os.unlink(file)
        except OSError as error:
            file = next((str(parent) for parent in (folder, *folder.parents) if os.path.isfile(parent)), "")
            reason = f"{file} is a file" if file else error.strerror
            raise InvalidArgument.of(setting, str(folder), f"a writable folder ({reason})") from None


def private_folder(folder: Path) -> None:
    """Creates a folder that only its owner may enter; closes an existing folder of ours that is open to others.

    Raises OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        folder.chmod(0o700)


def passable_folder(folder: Path) -> None:
    """Creates a folder through which other users reach theirs, whatever the umask; they cannot list it. Raises
    OSError."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)


def write_file(path: Path, content: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None) -> None:
    """Writes a whole file so that a reader, also one after a crash, sees the old content or the new. Creates its
    folder.

    `owner` are the user and group that get the file. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def rewrite_file(path: Path, content: bytes) -> None:
    """Writes a whole file, as `write_file` does. A file that exists keeps its owner and its mode: a service that may
    read it still may when root has changed it. Raises OSError."""
    try:
        found = path.stat()
    except FileNotFoundError:
        write_file(path, content)
        return
    owner = None if (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid()) else (found.st_uid, found.st_gid)
    write_file(path.resolve(), content, mode=stat.S_IMODE(found.st_mode), owner=owner)


def write_json(path: Path, value: Any) -> None:
    """Writes a whole file of JSON, as `write_file` does, from a dataclass or JSON types. Raises OSError."""
    write_file(path, json.dumps(value, default=asdict).encode())


def read_json(path: Path, most_bytes: int) -> Any:
    """Returns the JSON in an untrusted file: links and pipes are not read, other files up to `most_bytes`.

    Raises OSError, and ValueError for content that is not JSON or is nested too deeply.
    """
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        content = file.read(most_bytes)
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None


def sync_folder(folder: Path) -> None:
    """Makes new names in a folder durable, also against a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """Returns the folder for files that can be fetched again: KEELMAN_CACHE, else keelman under the user's cache
    folder."""
    folder = os.environ.get("KEELMAN_CACHE")
    if folder:
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser().absolute() / "keelman"
