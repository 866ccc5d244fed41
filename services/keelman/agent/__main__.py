"""`python -m keelman.agent run|config ...`: the agent without the command line's libraries."""

from __future__ import annotations

import sys

from keelman.runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("agent", sys.argv[1:]))
