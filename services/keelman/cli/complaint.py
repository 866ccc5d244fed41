"""The one line on stderr that says why a command failed."""

from __future__ import annotations

import re
import sys

# How Connect names a plugin that there is, in its words for one that there is not.
_PLUGIN = re.compile(r"PluginDesc\{klass=class ([^,}]+),[^}]*\}")


def plain_plugins(message: str) -> str:
    """Connect's message with plugins told by their classes only."""
    return _PLUGIN.sub(r"\1", message)


def complain(message: str) -> None:
    """Writes one error line; a message of several lines is joined, and plugins are told by their classes only."""
    text = "; ".join(line.strip() for line in plain_plugins(message).splitlines() if line.strip())
    print("keelman: " + text.replace(":; ", ": ").replace(".; ", "; "), file=sys.stderr)
