"""The settings of nodes."""

from __future__ import annotations

from keelman.gateway.ohara.definitions.common import TAGS
from keelman.gateway.ohara.wire.setting_def import Necessary, Permission, SettingDef, Type, table

LEGAL_HOSTNAME = r"[a-zA-Z0-9.\-]{1,63}$"
HOSTNAME, PORT, USER, PASSWORD = "hostname", "port", "user", "password"
SSH_PORT = 22

NODE = table(
    SettingDef(
        HOSTNAME, Type.STRING, "the name of the host", necessary=Necessary.REQUIRED, regex=LEGAL_HOSTNAME,
        permission=Permission.CREATE_ONLY,
    ),
    SettingDef(PORT, Type.REMOTE_PORT, "the port of the host's SSH", default=SSH_PORT),
    SettingDef(USER, Type.STRING, "a user of the host", necessary=Necessary.REQUIRED),
    SettingDef(PASSWORD, Type.PASSWORD, "the user's password", necessary=Necessary.REQUIRED),
    TAGS,
)  # fmt: skip
"""Port, user and password are stored and returned, but never used for a login."""
