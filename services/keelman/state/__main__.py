"""`python -m keelman.state run|config|rekey ...`."""

from __future__ import annotations

import sys

from keelman.state.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
