"""`python -m keelman.kafka_connect run|config ...`: the wrapper without the command line's libraries."""

from __future__ import annotations

import sys

from keelman.runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("kafka_connect", sys.argv[1:]))
