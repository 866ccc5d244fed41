"""`python -m keelman.worker run|config ...`: the worker without the command line's libraries."""

from __future__ import annotations

import sys

from keelman.runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("worker", sys.argv[1:]))
