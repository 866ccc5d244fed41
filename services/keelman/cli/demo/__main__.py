"""`python -m keelman.cli.demo [INPUT] [OUTPUT]`: what `make run` runs. INPUT, OUTPUT and ONCE also as environment."""

from __future__ import annotations

import os
import sys

from keelman.cli.demo.job import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
