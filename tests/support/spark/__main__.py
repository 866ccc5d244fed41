"""Runs the Spark service as a process of its own, with the loops of this folder: flags as of `keelman spark run`."""

import sys

from keelman.runtime.logs.logging import configure
from keelman.runtime.settings import load
from keelman.runtime.supervise import run_process
from keelman.spark.service import run
from keelman.spark.settings import Settings
from support.places import TESTS

flags = dict(argument.split("=", 1) for argument in sys.argv[1:])
settings = load(Settings, "spark", flags=flags).settings
configure("spark")
code = run_process(
    "keelman spark",
    lambda stop: run(settings, stop, loop="support.spark.loops:CountingLoop", path=[str(TESTS)]),
    grace_seconds=settings.grace_seconds,
)
raise SystemExit(code)
