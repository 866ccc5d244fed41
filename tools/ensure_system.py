"""Installs packages of the operating system: Java, PostgreSQL, MariaDB.

    python tools/ensure_system.py java | databases

Spark and brokers need Java; tests need the databases. Installs with apt-get where that is allowed (root); otherwise
prints the exact command to type. Exits with 1 when Java is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from keelman.runtime.java import installation as java


def install(packages: list[str]) -> bool:
    """True when apt-get installed the packages."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print(f"installing {' '.join(packages)}", flush=True)
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *packages]):
        if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
            return False
    return True


def ensure_java() -> bool:
    """True when there is a Java that will do."""
    try:
        found = java.find()
    except java.JavaMissing as error:
        if not install([java.install_command().rsplit(maxsplit=1)[-1]]):
            print(error.message, file=sys.stderr)
            return False
        found = java.find()
    print(f"Java {found.version}: {found.program}")
    return True


def ensure_postgresql() -> None:
    """PostgreSQL is only for the tests of the state service's second database: without it they are skipped."""
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb"):
        return
    if not install(["postgresql"]):
        print(
            "PostgreSQL's server is not installed: its tests will be skipped. To install it: apt-get install postgresql"
        )


def ensure_mariadb() -> None:
    """MariaDB is only for the tests of a Java connector that follows it: without it they are skipped."""
    if shutil.which("mariadbd") and shutil.which("mariadb"):
        return
    packages = ["mariadb-server-core", "mariadb-client-core"]
    if not install(packages):
        print(
            f"MariaDB is not installed: its tests will be skipped. To install it: apt-get install {' '.join(packages)}"
        )


def main(wanted: str) -> int:
    """Returns the exit code: 1 where there is no Java."""
    if wanted == "java":
        return 0 if ensure_java() else 1
    ensure_postgresql()
    ensure_mariadb()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
