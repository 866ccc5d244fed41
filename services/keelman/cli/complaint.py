"""The one line on stderr that says why a command failed."""

from __future__ import annotations

import sys


def complain(message: str) -> None:
    """Writes one error line; a message of several lines is joined."""
    text = "; ".join(line.strip() for line in message.splitlines() if line.strip())
    print("keelman: " + text.replace(":; ", ": ").replace(".; ", "; "), file=sys.stderr)
