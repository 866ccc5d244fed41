"""Keeps grpc out of forks.

By default grpc tries to live on in a forked child. A child that is about to become another program has no use for it,
and dies of it now and then (SIGSEGV, before its program begins), where another thread is in a call at that moment. No
channel of ours crosses a fork.
"""

from __future__ import annotations

import os

SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


def keep_out() -> None:
    """Called before grpc is imported, which reads this once."""
    os.environ[SUPPORT] = "false"
