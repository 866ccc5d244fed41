"""`python -m keelman.worker run|standalone|config ...`: the worker without the command line's libraries."""

from __future__ import annotations

import sys

from keelman.worker.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
