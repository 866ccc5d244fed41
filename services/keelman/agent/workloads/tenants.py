"""The users of a node's tenants: numbers that no account has, one for each tenant, kept as long as the node's home."""

from __future__ import annotations

import contextlib
import json
import pwd
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from keelman.model.errors import FailedPrecondition
from keelman.runtime.home import Home, passable_folder, private_folder, write_json
from keelman.runtime.processes.users import User, hand_over

SETTING = "agent.tenant_users"
NO_HOME = "/nonexistent"
SHARED = ("classes", "formats", "jars", "spark")
"""The parts of the cache that tenants may read and not change."""


@dataclass(slots=True)
class TenantUsers:
    """Gives each tenant a user of `numbers`, and remembers it in `file`: files of the tenant belong to that number.
    Used in one thread at a time."""

    numbers: range
    home: Home
    cache: Path
    """The cache that tenants may read."""
    _given: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._given = {}
        with contextlib.suppress(FileNotFoundError):
            self._given = {str(name): int(uid) for name, uid in json.loads(self.home.tenants.read_bytes()).items()}

    def user_of(self, tenant: str) -> User:
        """Returns the tenant's user, a new one for a new tenant. Raises FailedPrecondition (NO_TENANT_USER) when none
        is left, OSError when it cannot be noted."""
        uid = self._given.get(tenant)
        if uid is None or uid not in self.numbers:
            uid = self._free(tenant)
            self._given[tenant] = uid
            write_json(self.home.tenants, self._given)
        return User(f"keelman-{uid}", uid, uid, (), NO_HOME)

    def cache_of(self, user: User) -> Path:
        """Returns the cache of a tenant's user: its own folder, with links to the files that the shared cache had when
        it was made. Root changes nothing in it later: the tenant could have put links there. Raises OSError."""
        folder = self.home.tenant_caches / str(user.uid)
        if not folder.is_dir():
            passable_folder(self.home.tenant_caches)
            fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.home.tenant_caches))
            for part in SHARED:
                private_folder(fresh / part)
                for file in (self.cache / part).glob("*"):
                    (fresh / part / file.name).symlink_to(file)
            hand_over(fresh, user)
            fresh.rename(folder)
        return folder

    def _free(self, tenant: str) -> int:
        taken = set(self._given.values())
        for uid in self.numbers:
            if uid not in taken and not _has_account(uid):
                return uid
        raise FailedPrecondition(
            f"no user is left for tenant {tenant}: {SETTING} has {len(self.numbers)} numbers, and {self.home.tenants} "
            "has a tenant or this host has an account for each; give it more numbers",
            reason="NO_TENANT_USER",
        )


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
