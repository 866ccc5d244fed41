"""Runs `python -m keelman.spark run|config|pack`, without the command line's libraries."""

import sys

from keelman.runtime.main import service_main
from keelman.spark.masters import pack

words = sys.argv[1:]
raise SystemExit(pack.main(words[1:]) if words[:1] == ["pack"] else service_main("spark", words))
