"""`/v0/objects`: free JSON under a key. User interfaces keep their workspaces here."""

from __future__ import annotations

from keelman.gateway.ohara.definitions.common import GROUP, NAME, TAGS
from keelman.gateway.ohara.documents.stored import StoredKind
from keelman.gateway.ohara.wire.setting_def import table


class Objects(StoredKind):
    """Objects of any content."""

    KIND = "object"
    DEFINITIONS = table(GROUP, NAME, TAGS)
