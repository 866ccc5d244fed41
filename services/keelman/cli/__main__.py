"""`python -m keelman.cli`: the console script `keelman` without its installation."""

import sys

from keelman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
