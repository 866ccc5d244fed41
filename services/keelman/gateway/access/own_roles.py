"""Reads the roles that an access file defines, and finds the role that a table of the file names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keelman.model.access.roles import AnyRole, OwnRole, Right, Role
from keelman.model.errors import InvalidArgument

TABLE = "roles"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def read_own_roles(label: str, document: Mapping[str, Any]) -> dict[str, OwnRole]:
    """Returns the roles of the table [roles], by name: each has a list of rights, and sees in any case. Raises
    InvalidArgument."""
    table, where = document.get(TABLE, {}), f"{label}: {TABLE}"
    if not isinstance(table, dict):
        raise InvalidArgument.of(label, TABLE, "a table [roles]")
    roles: dict[str, OwnRole] = {}
    for name, rights in table.items():
        if not _NAME.fullmatch(name) or name in set(Role):
            legal = f"1 to 63 of a-z, 0-9 and -, a letter first, and none of {', '.join(Role)}"
            raise InvalidArgument.of(where, name, legal)
        if not isinstance(rights, list):
            raise InvalidArgument.of(f"{where}: {name}", type(rights).__name__, "a list of rights")
        for right in rights:
            if not isinstance(right, str) or right not in set(Right):
                raise InvalidArgument.of(f"{where}: {name}", right, f"rights, of {', '.join(Right)}")
        roles[name] = OwnRole(name, frozenset(map(Right, rights)) | {Right.VIEW})
    return roles


def named_role(where: str, table: Mapping[str, Any], own: Mapping[str, OwnRole]) -> AnyRole:
    """Returns the role that a table names. Raises InvalidArgument for an unknown one."""
    role = table.get("role")
    if isinstance(role, str) and role in own:
        return own[role]
    if not isinstance(role, str) or role not in set(Role):
        raise InvalidArgument.of(f"{where}: role", role, f"one of {', '.join([*Role, *own])}")
    return Role(role)
