"""Gives a process and all that it starts host names of their own: its /etc/hosts has the host's lines and more.

The file is mounted over /etc/hosts in a mount namespace of the process: so everything in it that uses the system's
resolver sees it, Python, Java and C alike, and no other process does. That takes CAP_SYS_ADMIN, or a host that lets
users make user namespaces. Run as a program it does so and becomes the command that follows. It is a program of its
own, and uses the standard library alone, as it starts before each such process. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HOSTS = "/etc/hosts"
FAILED = 3
"""Exit code of the program if it cannot set up the host names."""
_NEWNS, _NEWUSER = 0x00020000, 0x10000000
BIND, REC = 4096, 16384
_SLAVE = 1 << 19


class NotPossible(Exception):
    """This process cannot have host names of its own; the text has the reason."""


def with_routes(command: Sequence[str], file: Path) -> tuple[str, ...]:
    """Returns the command line that runs `command` with the routes in a JSON file, addresses by names."""
    return (sys.executable, "-I", "-S", __file__, str(file), *command)


def enter(routes: Mapping[str, str]) -> None:
    """Gives this process the routes, addresses by names. Call it before the process has a second thread.

    Raises NotPossible.
    """
    if not routes:
        return
    if sys.platform != "linux":
        raise NotPossible(f"{sys.platform} has no mount namespaces")
    try:
        with open(HOSTS, encoding="utf-8", errors="surrogateescape") as own:
            text = hosts_text(own.read(), routes)
    except OSError as error:
        raise NotPossible(f"{HOSTS} of this host cannot be read: {error.strerror}") from None
    unshare()
    _mount_over(HOSTS, text)
    _check(routes)


def hosts_text(own: str, routes: Mapping[str, str]) -> str:
    """Returns a hosts file with the host's own lines, without the names that have routes, and with the routes."""
    lines, names = [], {name.lower() for name in routes}
    for line in own.splitlines():
        words = line.partition("#")[0].split()
        left = [name for name in words[1:] if name.lower() not in names]
        if left == words[1:]:
            lines.append(line)
        elif left:
            lines.append(" ".join((words[0], *left)))
    return "\n".join([*lines, *(f"{address} {name}" for name, address in sorted(routes.items())), ""])


def unshare() -> None:
    """Moves this process into a mount namespace of its own; if that is not allowed, within a user namespace of its
    own. Later mounts of the host are visible there, and none of its own is visible to the host. Raises NotPossible."""
    _leave()
    if reason := call("mount", None, b"/", None, REC | _SLAVE, None):
        raise NotPossible(f"the mounts of this process cannot be kept apart from the host's: {reason}")


def mount(source: str, target: str, *, flags: int, kind: str = "", options: str = "") -> None:
    """Mounts a source at a target. Raises NotPossible."""
    words = (source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)
    if reason := call("mount", *words):
        raise NotPossible(f"nothing can be mounted over {target}: {reason}")


def _leave() -> None:
    user, group = os.getuid(), os.getgid()
    first = call("unshare", _NEWNS)
    if not first:
        return
    if second := call("unshare", _NEWNS | _NEWUSER):
        reason = f"it needs CAP_SYS_ADMIN ({first}), or a host where users may have user namespaces ({second})"
        raise NotPossible(f"no mount namespace: {reason}")
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise NotPossible(f"a user namespace cannot be set up: {error.strerror}") from None


def _mount_over(target: str, text: str) -> None:
    """Mounts the text over a file."""
    descriptor, path = tempfile.mkstemp(prefix="keelman-hosts-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.chmod(path, 0o644)
        mount(path, target, flags=BIND)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _check(routes: Mapping[str, str]) -> None:
    """Checks the routes with the resolver, which may be configured to use other sources first. Raises NotPossible."""
    for name, address in routes.items():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        packed = socket.inet_pton(family, address)
        try:
            addresses = {info[4][0] for info in socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)}
        except OSError:
            addresses = set()
        if packed not in {socket.inet_pton(family, str(address).partition("%")[0]) for address in addresses}:
            raise NotPossible(f"the resolver of this host does not look into {HOSTS} first: {name!r} is not {address}")


def call(name: str, *arguments: object) -> str:
    """Calls a function of libc. Returns why it failed, empty if it succeeded."""
    import ctypes  # noqa: PLC0415  (only where it is needed)

    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if name == "mount":
        function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_void_p)
    return os.strerror(ctypes.get_errno()) if function(*arguments) else ""


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main(file: str, command: Sequence[str]) -> None:
    """Becomes the command with the routes of a file; without a command, checks whether that is possible."""
    try:
        enter(json.loads(Path(file).read_bytes()))
        if command:
            os.execvp(command[0], list(command))
    except (NotPossible, OSError, ValueError) as error:
        print(error if isinstance(error, NotPossible) else f"{file}: {error}", file=sys.stderr)
        sys.exit(FAILED)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
