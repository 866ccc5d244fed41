"""Property tests try the same cases each time, so that a run says something of the change that it is run for. None has
a deadline: a busy machine stops any of them for a moment.

`make explore` has them try random cases.
"""

import os
import signal

from hypothesis import settings

from keelman.runtime import grpc_forks

pytest_plugins = ["support.costs.plugin", "support.costs.hangs", "support.costs.leftovers"]

os.environ.setdefault("KEELMAN_STATE_SPARK_IDLE_SECONDS", "0")  # what no test needs any more makes room for the next
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it starts in the background ignore it, and programs that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
grpc_forks.keep_out()
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
