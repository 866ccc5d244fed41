"""Holds workloads, with all that they start, to their limits: by a control group, a systemd scope, or the agent itself.

The way is chosen when the agent starts, and logged. The watchdog is for hosts without the others: the agent adds the
memory of a workload's processes up each second, and has them run on as many processors as they may use.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from keelman.model.errors import InvalidArgument
from keelman.model.workload import NO_LIMITS, ResourceLimits
from keelman.runtime.home import Home
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.cgroups import Groups, KernelTree, find_parent
from keelman.runtime.processes.children import ChildRecord
from keelman.runtime.processes.users import User

log = get_logger()
CGROUP, SYSTEMD, WATCHDOG, AUTO = "cgroup", "systemd", "watchdog", "auto"
TENANT = "tenant-"
ASK_SECONDS = 5.0
MEBIBYTE = 1024 * 1024


Shares = Mapping[str, ResourceLimits]
"""The limits of tenants, by name."""


@dataclass(frozen=True, slots=True)
class Held:
    """The hold on one process: words before its command, and an action in it before the command begins."""

    by: str = ""
    group: str = ""
    prefix: tuple[str, ...] = ()
    drops: bool = False  # these words have the command run as another user
    memory_limit: int = 0  # in bytes, of several workloads together
    enter: Callable[[int], None] | None = field(default=None, compare=False)


NOT_HELD = Held()


class Way(Protocol):
    """One way of holding workloads to limits."""

    def hold(self, name: str, limits: ResourceLimits, run_as: User | None, tenant: str) -> Held:
        """Prepares a workload's next process, which will run as that user. Raises OSError."""

    def adopt(self, name: str, record: ChildRecord) -> None:
        """Takes over a process that an earlier agent started."""

    def killed_for_memory(self, record: ChildRecord) -> bool:
        """Returns whether a killer other than the agent ended it for its memory. Called once its process has ended."""

    def release(self, name: str, record: ChildRecord) -> None:
        """Releases the hold when nothing of the process is left. Raises OSError."""


class CgroupWay:
    """A control group for each workload with limits; for each tenant one, in which are those of all its workloads."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._shares: Shares = {}

    def hold(self, name: str, limits: ResourceLimits, run_as: User | None, tenant: str) -> Held:
        """Makes a new group."""
        within = f"{TENANT}{tenant}" if tenant else ""
        group = self._groups.make(name, memory_bytes=limits.memory_bytes, cpus=limits.cpus, within=within)
        if tenant:
            self._bound(tenant)
        share = self._shares.get(tenant, NO_LIMITS).memory_bytes
        return Held(CGROUP, group, enter=lambda pid: self._groups.enter(group, pid), memory_limit=share)

    def share(self, shares: Shares) -> None:
        """Bounds the groups of tenants, as far as they have one. Raises OSError."""
        changed = [tenant for tenant, limits in shares.items() if self._shares.get(tenant) != limits]
        self._shares = dict(shares)
        for tenant in changed:
            with contextlib.suppress(FileNotFoundError):
                self._bound(tenant)

    def _bound(self, tenant: str) -> None:
        limits = self._shares.get(tenant, NO_LIMITS)
        group = self._groups.group_of(f"{TENANT}{tenant}")
        self._groups.bound(group, memory_bytes=limits.memory_bytes, cpus=limits.cpus, anew=True)

    def adopt(self, name: str, record: ChildRecord) -> None:
        """Does nothing: the group still exists."""

    def killed_for_memory(self, record: ChildRecord) -> bool:
        """Decides by the kernel's count in the group."""
        return self._groups.killed_for_memory(record.group)

    def release(self, name: str, record: ChildRecord) -> None:
        """Removes the group."""
        self._groups.remove(record.group)


class SystemdWay:
    """A scope of systemd for each process with limits; it ends with its last process."""

    def __init__(self, *, user: bool) -> None:
        """`user`: of this user's manager, else of the system's."""
        self._manager = ("--user",) if user else ()

    def hold(self, name: str, limits: ResourceLimits, run_as: User | None, tenant: str) -> Held:
        """Chooses a scope of a new name, which systemd-run makes before it becomes the workload's process."""
        unit = f"keelman-{name.replace('/', '-')}-{uuid.uuid4().hex[:8]}.scope"
        user = () if run_as is None else (f"--uid={run_as.uid}", f"--gid={run_as.gid}")
        return Held(SYSTEMD, unit, scope_command(unit, limits, (*self._manager, *user)), drops=bool(user))

    def adopt(self, name: str, record: ChildRecord) -> None:
        """Does nothing: the scope still exists."""

    def killed_for_memory(self, record: ChildRecord) -> bool:
        """Decides by systemd's result for the scope."""
        return _said(("systemctl", *self._manager, "show", "--property=Result", "--value", record.group)) == "oom-kill"

    def release(self, name: str, record: ChildRecord) -> None:
        """Has systemd forget the scope, which it keeps after a failure."""
        _said(("systemctl", *self._manager, "reset-failed", record.group))


class WatchdogWay:
    """The agent itself; limits of processors become a choice of processors."""

    def __init__(self) -> None:
        self._given: dict[str, frozenset[int]] = {}

    def hold(self, name: str, limits: ResourceLimits, run_as: User | None, tenant: str) -> Held:
        """Chooses processors."""
        if not limits.cpus or not hasattr(os, "sched_setaffinity"):
            return Held(WATCHDOG)
        others = [numbers for other, numbers in self._given.items() if other != name]
        mine = processors_for(limits.cpus, os.sched_getaffinity(0), others)
        self._given[name] = mine
        return Held(WATCHDOG, enter=lambda pid: os.sched_setaffinity(pid, mine))

    def adopt(self, name: str, record: ChildRecord) -> None:
        """Finds out which processors it has."""
        with contextlib.suppress(OSError, AttributeError):
            processors = frozenset(os.sched_getaffinity(record.pid))
            if processors < os.sched_getaffinity(0):
                self._given[name] = processors

    def killed_for_memory(self, record: ChildRecord) -> bool:
        """Returns False: only the agent kills, and knows."""
        return False

    def release(self, name: str, record: ChildRecord) -> None:
        """Frees its processors for others."""
        self._given.pop(name, None)


class Limiter:
    """Holds workloads to their limits in the way that this host has. Where that fails for one, the watchdog does it."""

    def __init__(self, ways: Mapping[str, Way], first: str) -> None:
        """`ways` by name; processes of an earlier agent may be held in another than the first."""
        self._ways = {WATCHDOG: WatchdogWay(), **ways}
        self.first = first

    def hold(self, name: str, limits: ResourceLimits, run_as: User | None = None, tenant: str = "") -> Held:
        """Prepares a workload's next process, which will run as that user; None: as the agent does. A tenant's is in
        the tenant's group, where there are groups, also without limits of its own."""
        is_limited = limits != NO_LIMITS
        if not is_limited and not (tenant and self.first == CGROUP):
            return NOT_HELD
        for by in (self.first, WATCHDOG) if is_limited else (self.first,):
            try:
                return self._ways[by].hold(name, limits, run_as, tenant)
            except OSError as error:
                log.warning("limits_failed", workload=name, by=by, error=str(error))
        return Held(WATCHDOG) if is_limited else NOT_HELD

    def share(self, shares: Shares) -> None:
        """Limits tenants, each with all its workloads together, where there are groups: work for a thread."""
        way = self._ways.get(CGROUP)
        if isinstance(way, CgroupWay):
            try:
                way.share(shares)
            except OSError as error:
                log.warning("limits_failed", tenants=sorted(shares), by=CGROUP, error=str(error))

    def adopt(self, name: str, record: ChildRecord) -> None:
        """Takes over a process that an earlier agent started."""
        if way := self._ways.get(record.limited_by):
            way.adopt(name, record)

    def killed_for_memory(self, record: ChildRecord) -> str:
        """Returns words about an ended process that the system, not the agent, killed for its memory; else empty."""
        way = self._ways.get(record.limited_by)
        if way is None or not record.memory_limit or not way.killed_for_memory(record):
            return ""
        limit = mebibytes(record.memory_limit)
        return f"it and its children needed more memory than their limit of {limit}, and were killed"

    def release(self, name: str, record: ChildRecord) -> None:
        """Releases the hold when nothing of the process is left."""
        if way := self._ways.get(record.limited_by):
            try:
                way.release(name, record)
            except OSError as error:
                log.warning("limits_not_released", workload=name, by=record.limited_by, error=str(error))


@dataclass(frozen=True, slots=True)
class LimitMeans:
    """The host's means to hold workloads; each is empty where it can be used, else the reason why not."""

    cgroup: str
    systemd: str


def choose(choice: str, host: LimitMeans) -> tuple[str, str]:
    """Returns the way to use and the reason. Raises InvalidArgument when the requested way is not available."""
    reasons = {CGROUP: host.cgroup, SYSTEMD: host.systemd, WATCHDOG: ""}
    if choice != AUTO:
        if reasons[choice]:
            raise InvalidArgument.of(
                "agent.limits", choice, f"auto, watchdog, or what this host has ({reasons[choice]})"
            )
        return choice, "agent.limits"
    by = next(name for name, problem in reasons.items() if not problem)
    passed_over = [f"no {name}: {problem}" for name, problem in reasons.items() if problem and by == WATCHDOG]
    return by, "; ".join(passed_over)


def make_limiter(choice: str, home: Home) -> Limiter:
    """Looks at this host and makes its control groups ready; takes up to some seconds: work for a thread.

    Raises InvalidArgument when the requested way is not available.
    """
    ways: dict[str, Way] = {}
    no_cgroup = "another was chosen" if choice not in (AUTO, CGROUP) else _cgroup_way(ways, home)
    sought = choice == SYSTEMD or (choice == AUTO and no_cgroup)
    no_systemd = _systemd_way(ways) if sought else "another was chosen"
    by, reason = choose(choice, LimitMeans(no_cgroup, no_systemd))
    log.info("limits", by=by, **({"because": reason} if reason else {}))
    return Limiter(ways, by)


def _cgroup_way(ways: dict[str, Way], home: Home) -> str:
    try:
        mounts, own = (Path(f"/proc/self/{file}").read_text(encoding="utf-8") for file in ("mountinfo", "cgroup"))
        tree = KernelTree()
        parent = find_parent(tree, mounts, own, root=os.geteuid() == 0, managed=Path("/run/systemd/system").exists())
        if isinstance(parent, str):
            return parent
        groups = Groups(tree, parent, hashlib.sha256(os.fsencode(home.root)).hexdigest()[:8])
        groups.begin()
    except OSError as error:
        return f"{error.filename or 'control groups'}: {error.strerror}"
    ways[CGROUP] = CgroupWay(groups)
    return ""


def _systemd_way(ways: dict[str, Way]) -> str:
    user = os.geteuid() != 0
    there = f"{os.environ.get('XDG_RUNTIME_DIR', '')}/systemd/private" if user else "/run/systemd/system"
    if not Path(there).exists() or not shutil.which("systemd-run"):
        return "systemd does not run here"
    manager = ("--user",) if user else ()
    try:
        trial = scope_command(f"keelman-trial-{uuid.uuid4().hex[:8]}.scope", ResourceLimits(1.0, 2**28), manager)
        done = subprocess.run((*trial, "true"), capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode:
        return done.stderr.strip() or f"systemd-run ended with exit code {done.returncode}"
    ways[SYSTEMD] = SystemdWay(user=user)
    return ""


def scope_command(unit: str, limits: ResourceLimits, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the words before a command that run it in a scope with these limits; the process stays the same."""
    command = ["systemd-run", *options, "--scope", "--quiet", f"--unit={unit}"]
    if limits.memory_bytes:
        command += ["-p", f"MemoryMax={limits.memory_bytes}", "-p", "MemorySwapMax=0"]
    if limits.cpus:
        command += ["-p", f"CPUQuota={max(1, round(limits.cpus * 100))}%"]
    return (*command, "--")


def processors_for(cpus: float, available: Iterable[int], others: Iterable[Iterable[int]]) -> frozenset[int]:
    """Returns as many processors as the limit needs, those that the fewest others were given."""
    taken = Counter(number for numbers in others for number in numbers)
    ordered = sorted(available, key=lambda number: (taken[number], number))
    return frozenset(ordered[: max(1, math.ceil(cpus - 1e-9))])


def over_limit(used: int, limit: int) -> str:
    """Returns words about a process that the agent kills for its memory."""
    return f"it and its children used {mebibytes(used)} of memory, their limit is {mebibytes(limit)}: they were killed"


def mebibytes(count: int) -> str:
    """Returns bytes as text for people."""
    return f"{count / MEBIBYTE:.0f} MiB"


def held_record(record: ChildRecord, held: Held, limits: ResourceLimits) -> ChildRecord:
    """Returns the record of a process that is held so."""
    command = (*held.prefix, *record.command)
    memory = (limits.memory_bytes or held.memory_limit) if held.by else 0
    return replace(record, command=command, limited_by=held.by, group=held.group, memory_limit=memory)


def _said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
