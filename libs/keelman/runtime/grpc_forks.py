"""Keeps grpc out of forks.

By default grpc tries to keep working in a forked child. A child that is about to become another program does not need
it, and sometimes dies of it (SIGSEGV, before its program begins) if another thread is in a call at that moment. No
channel of ours crosses a fork.
"""

from __future__ import annotations

import os

SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


def keep_out() -> None:
    """Switches grpc's support for forks off. Call it before grpc is imported, which reads this once."""
    os.environ[SUPPORT] = "false"
