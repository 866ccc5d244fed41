"""`python -m keelman.state run|config ...`."""

from __future__ import annotations

import sys

from keelman.runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("state", sys.argv[1:]))
