"""Runs `python -m keelman.spark run|config`, without the command line's libraries."""

import sys

from keelman.runtime.main import service_main

raise SystemExit(service_main("spark", sys.argv[1:]))
