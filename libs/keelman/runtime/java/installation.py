"""Finds a Java that Spark and the managed broker can run on, or names the exact command to install one.

Standard library only: `python -m keelman.runtime.java.installation` serves set-up scripts before anything else is
installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import FailedPrecondition

MINIMUM = 17
ANSWER_SECONDS = 30.0
USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
)


class JavaMissing(FailedPrecondition):
    """There is no Java, or none is new enough."""

    reason = "JAVA_MISSING"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs."""

    program: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 of 17.0.15, 8 of 1.8.0_392."""
        return major_of(self.version)

    @property
    def home(self) -> Path:
        """The JAVA_HOME for this Java."""
        return self.program.resolve().parent.parent


def find(
    *,
    minimum: int = MINIMUM,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str] = USUAL_FOLDERS,
    ask: Callable[[Path], str | None] | None = None,
) -> Java:
    """Returns the first Java of at least `minimum`: JAVA_HOME, then PATH, then the usual folders (newest name first).

    A JAVA_HOME that is set but unusable is skipped if another Java will do, since Spark's launcher gets the Java found
    here. `ask` returns a program's version, by default by running it. Raises JavaMissing naming every place, the legal
    versions and the command to type.
    """
    environment = os.environ if environment is None else environment
    seen: list[str] = []
    for origin, program in _candidates(environment, folders):
        if not program.is_file():
            seen.append(f"{origin} has no {program}")
            continue
        version = (ask or answered)(program)
        if version is None:
            seen.append(f"{program} does not run")
        elif major_of(version) < minimum:
            seen.append(f"{program} is Java {version}")
        else:
            return Java(program, version)
    versions = "; ".join(dict.fromkeys(seen)) or "none in JAVA_HOME, on PATH or in the usual folders"
    raise JavaMissing(
        f"Java {minimum} or newer is needed. Found: {versions}. To install it: {install_command()}\n"
        "or set JAVA_HOME to the folder of one that is installed elsewhere",
        metadata={"minimum": str(minimum), "install_command": install_command()},
    )


def _candidates(environment: Mapping[str, str], folders: Sequence[str]) -> list[tuple[str, Path]]:
    candidates: list[tuple[str, Path]] = []
    home = environment.get("JAVA_HOME", "")
    if home:
        candidates.append((f"JAVA_HOME={home}", Path(home).expanduser() / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    for pattern in folders:
        start = Path(pattern).expanduser()
        root = Path(start.anchor)
        homes = sorted(root.glob(str(start.relative_to(root))), reverse=True)
        candidates += [(pattern, h / "bin" / "java") for h in homes if (h / "bin" / "java").is_file()]
    return candidates


def released(program: Path) -> str | None:
    """Returns the version in the file beside a java program, which takes no process; runs the program if there is
    none."""
    try:
        text = (program.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return answered(program)
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else answered(program)


def answered(program: Path) -> str | None:
    """Returns the version that a java program reports; None if it cannot run or reports none."""
    try:
        answer = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return match.group(1) if match and answer.returncode == 0 else None


def major_of(version: str) -> int:
    """Returns the feature release of a version text; 0 if it has none."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def install_command(
    *,
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
    release: Mapping[str, str] | None = None,
    root: bool | None = None,
) -> str:
    """Returns the exact command that installs a Java with this machine's package manager."""
    root = (hasattr(os, "geteuid") and os.geteuid() == 0) if root is None else root
    sudo = "" if root else "sudo "
    if platform == "darwin":
        return "brew install openjdk@17"
    if which("apt-get"):
        # Debian 13 no longer has 17, Debian 12 does not have 21; every Ubuntu still kept alive has 17.
        release = os_release() if release is None else release
        number = release.get("VERSION_ID", "").partition(".")[0]
        newer = release.get("ID") == "debian" and number.isdigit() and int(number) >= 13
        package = f"openjdk-{21 if newer else 17}-jre-headless"
        return f"{sudo}apt-get update && {sudo}apt-get install -y {package}"
    for manager, command in (
        ("dnf", "dnf install -y java-21-openjdk-headless"),
        ("yum", "yum install -y java-17-openjdk-headless"),
        ("zypper", "zypper install -y java-17-openjdk-headless"),
        ("pacman", "pacman -S --noconfirm jre17-openjdk-headless"),
        ("apk", "apk add openjdk17-jre-headless"),
        ("brew", "brew install openjdk@17"),
    ):
        if which(manager):
            return command if manager == "brew" else f"{sudo}{command}"
    return f"the package manager of this system, package OpenJDK {MINIMUM} (headless is enough)"


def os_release(file: Path = Path("/etc/os-release")) -> dict[str, str]:
    """Returns the operating system's name and version; empty if the file is missing."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {k: v.strip("\"'") for k, _, v in (line.partition("=") for line in lines) if k and v}


def main(arguments: Sequence[str]) -> int:
    """Prints the program found (exit 0) or the message (exit 1); with --install-command prints that command only."""
    if list(arguments) == ["--install-command"]:
        print(install_command())
        return 0
    try:
        java = find()
    except JavaMissing as error:
        print(error.message, file=sys.stderr)
        return 1
    print(java.program)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
