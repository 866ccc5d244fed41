"""Builds the files of a release into build/release and checks each of them as a user gets it: `make release`.

The wheel is installed into an empty environment with the packages of its lock; there the command prints its help, every
module is imported, and, with what building needs, the source distribution is built into an equal wheel. The bill of
materials is valid by the schema of CycloneDX. The chart, the image of the protos and the container's context are read
back from their files. Nothing is published.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "release"
BIN = Path(sys.executable).parent
CHART = ROOT / "deploy" / "helm" / "keelman"
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
WHEEL = OUT / f"keelman-{VERSION}-py3-none-any.whl"
LOCK = OUT / f"keelman-{VERSION}-requirements.txt"
BILL = OUT / f"keelman-{VERSION}.cdx.json"
SDIST = OUT / f"keelman-{VERSION}.tar.gz"
PACKAGED_CHART = OUT / f"keelman-{VERSION}.tgz"
PROTOS = OUT / f"keelman-protos-{VERSION}.binpb"
CONTEXT = OUT / f"keelman-container-{VERSION}.tar.gz"
SITE = OUT / f"keelman-docs-{VERSION}.tar.gz"
IMPORTS = """
import importlib, pathlib, sys
import keelman.cli.main as main
package = pathlib.Path(main.__file__).parents[1]
assert str(package).startswith(sys.prefix), f"{package} is not in {sys.prefix}"
programs = ("__main__.py", "migrations/env.py")  # those run when they are imported, as a program or by alembic
files = [file.relative_to(package.parent) for file in package.rglob("*.py") if not file.as_posix().endswith(programs)]
names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
for name in sorted(names):
    importlib.import_module(name)
print(f"{len(names)} modules")
"""
"""Imports each module of the installed wheel; none may come from a checkout."""


def run(*words: str | Path, folder: Path = ROOT) -> str:
    """Returns the output of a program. Raises SystemExit with its output if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"release: {' '.join(map(str, words))} failed with code {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def require(condition: bool, problem: str) -> None:
    """Ends the program with the problem unless the condition holds."""
    if not condition:
        sys.exit(f"release: {problem}")


def build() -> None:
    """Writes all files of the release."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    run(BIN / "python", "-m", "hatchling", "build", "-d", OUT)
    shutil.copy(ROOT / "requirements" / "wheel.txt", LOCK)
    run(BIN / "python", "-m", "tools.supply.sbom", BILL)
    run(BIN / "helm", "package", CHART, "--destination", OUT)
    run(BIN / "buf", "build", "-o", PROTOS)
    with tarfile.open(CONTEXT, "w:gz") as context:
        context.add(CONTAINERFILE, "Containerfile")
        context.add(WHEEL, f"dist/{WHEEL.name}")
        context.add(LOCK, f"dist/{LOCK.name}")
    with tarfile.open(SITE, "w:gz") as site:
        site.add(ROOT / "build" / "site", f"keelman-docs-{VERSION}")


def check_version(_: Path) -> str:
    """The chart and the changelog name the version of pyproject.toml."""
    chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    for line in (f"\nversion: {VERSION}\n", f'\nappVersion: "{VERSION}"\n'):
        require(line in chart, f"deploy/helm/keelman/Chart.yaml: its version differs; set {line.strip()}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    require(f"\n## {VERSION}\n" in changes, f"CHANGELOG.md: no section for {VERSION}; add one")
    return VERSION


def install(python: Path, lock: Path) -> None:
    """Installs what a lock file has."""
    uv = BIN / "uv"
    if uv.exists():
        run(uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", lock)
    else:
        run(BIN / "python", "-m", "pip", "--python", python, "install", "-q", "--require-hashes", "-r", lock)


def check_wheel(work: Path) -> str:
    """The wheel works in an empty environment."""
    run(sys.executable, "-m", "venv", "--without-pip", work / "venv")
    python = work / "venv" / "bin" / "python"
    install(python, LOCK)
    run(BIN / "python", "-m", "pip", "--python", python, "install", "-q", "--no-deps", WHEEL)
    help_text = run(python.with_name("keelman"), "--help", folder=work)
    require("Usage: keelman" in help_text, f"keelman --help printed no usage:\n{help_text}")
    version = run(python.with_name("keelman"), "--version", folder=work)
    require(VERSION in version, f"keelman --version printed {version.strip()!r}, not {VERSION}")
    return run(python, "-I", "-c", IMPORTS, folder=work).strip()


def check_sdist(work: Path) -> str:
    """The source distribution builds the same wheel in that environment."""
    python, out = work / "venv" / "bin" / "python", work / "wheels"
    install(python, ROOT / "requirements" / "run.txt")
    run(
        BIN / "python",
        "-m",
        "pip",
        "--python",
        python,
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        out,
        SDIST,
    )
    names = [set(zipfile.ZipFile(file).namelist()) for file in (WHEEL, out / WHEEL.name)]
    differing = sorted(names[0] ^ names[1])
    require(not differing, f"{SDIST.name} builds a wheel with other files: {', '.join(differing[:5])}")
    return f"{len(names[0])} files"


def check_bill(_: Path) -> str:
    """The bill of materials is valid CycloneDX."""
    text = BILL.read_text(encoding="utf-8")
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    require(problem is None, f"{BILL.name} is not valid: {str(problem)[:500]}")
    return f"{len(json.loads(text)['components'])} components"


def check_chart(work: Path) -> str:
    """helm reads the packaged chart and makes objects of it."""
    run(BIN / "helm", "lint", "--quiet", PACKAGED_CHART)
    objects = run(BIN / "helm", "template", "release", PACKAGED_CHART, folder=work)
    return f"{objects.count(chr(10) + 'kind: ')} objects"


def check_protos(_: Path) -> str:
    """buf reads the image of the protos, which breaks nothing of the contract that was kept last."""
    run(BIN / "buf", "lint", PROTOS)
    run(BIN / "buf", "breaking", PROTOS, "--against", ROOT / "protos" / "released.binpb")
    return f"{len(run(BIN / 'buf', 'ls-files', PROTOS).split())} files"


def check_container(work: Path) -> str:
    """Each file that the Containerfile copies is in the context."""
    with tarfile.open(CONTEXT) as context:
        context.extractall(work / "context", filter="data")
    text = (work / "context" / "Containerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    missing = [name for names in copied for name in names if not list((work / "context").glob(name))]
    require(bool(copied) and not missing, f"{CONTEXT.name} lacks {', '.join(missing) or 'a COPY'}")
    return f"{sum(map(len, copied))} copied"


CHECKS: dict[str, Callable[[Path], str]] = {
    "version": check_version,
    WHEEL.name: check_wheel,
    SDIST.name: check_sdist,
    BILL.name: check_bill,
    PACKAGED_CHART.name: check_chart,
    PROTOS.name: check_protos,
    CONTEXT.name: check_container,
}


def main() -> None:
    """Builds, checks, and writes SHA256SUMS."""
    build()
    with tempfile.TemporaryDirectory(prefix="keelman-release-") as folder:
        for name, check in CHECKS.items():
            print(f"== {name}: {check(Path(folder))}", flush=True)
    files = sorted(OUT.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (OUT / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {', '.join(file.name for file in files)}, SHA256SUMS")


if __name__ == "__main__":
    main()
