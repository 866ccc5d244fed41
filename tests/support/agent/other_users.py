"""Agents in tests whose workloads run as other users."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from keelman.runtime.home import cache_folder


def reachable(aside: Path) -> tuple[str, ...]:
    """The command prefix for an agent whose Python is in root's own folder, so that other users can run it."""
    hidden = Path.home()
    if not Path(sys.executable).resolve().is_relative_to(hidden) or hidden.stat().st_mode & stat.S_IXOTH:
        return ()
    shown = {Path(sys.base_prefix), cache_folder()}
    aside.mkdir(exist_ok=True)
    script = f"set -e; mount --bind {hidden} {aside}; mount -t tmpfs -o mode=755 none {hidden}; "
    script += "".join(
        f"mkdir -p {path}; mount --bind {aside / path.relative_to(hidden)} {path}; " for path in shown if path.exists()
    )
    return ("unshare", "--mount", "sh", "-c", f'{script} exec "$@"', "sh")
