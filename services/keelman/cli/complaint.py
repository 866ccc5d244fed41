"""The one line on stderr that says why a command failed."""

from __future__ import annotations

import re
import sys

# How Connect names a plugin that there is, in its words for one that there is not.
_PLUGIN = re.compile(r"PluginDesc\{klass=class ([^,}]+),[^}]*\}")


def complain(message: str) -> None:
    """Writes one error line; a message of several lines is joined, and plugins are told by their classes only."""
    message = _PLUGIN.sub(r"\1", message)
    text = "; ".join(line.strip() for line in message.splitlines() if line.strip())
    print("keelman: " + text.replace(":; ", ": ").replace(".; ", "; "), file=sys.stderr)
