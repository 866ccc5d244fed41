"""`python -m keelman.broker run|prepare|config ...`: the broker without the command line's libraries."""

from __future__ import annotations

import asyncio
import sys

from keelman.broker.prepare import main as prepare_main
from keelman.runtime.main import service_main

if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(asyncio.run(prepare_main()) if words == ["prepare"] else service_main("broker", words))
