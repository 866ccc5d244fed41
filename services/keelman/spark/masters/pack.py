"""The executors' environment as one archive: all that slots import, for executors that have only Spark and Python.

`keelman spark pack` makes it from what is installed beside keelman; a Spark service with a remote master ships it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

import keelman
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError

FOLDER = "keelman-pack"
"""The name of the unpacked archive in the folder that an executor works in."""
MANIFEST = "keelman-pack.json"
ROOTS = ("keelman[slot]", "pyarrow", "pandas")  # the last two are PySpark's, for mapInArrow
PARTS = ("api", "connect", "connectors", "engine", "kafka", "model", "rpc", "runtime")
# Tests, headers and Arrow Flight: a third of the size, and nothing that slots import.
LEFT_OUT = ("pyarrow/tests/", "pyarrow/include/", "pyarrow/src/", "pandas/tests/", "numpy/tests/")
LEFT_OUT_PARTS = ("_flight",)
LEFT_OUT_ENDS = (".pyx", ".pxd", ".pxi", ".h", ".hpp", ".a", ".c", ".cc")


@dataclass(frozen=True, slots=True)
class Pack:
    """An archive and its manifest. `packages` are name to version, `sizes` name to bytes before packing."""

    file: Path
    version: str
    python: str
    platform: str
    packages: dict[str, str]
    sizes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Pack:
        """Reads an archive's manifest. Raises InvalidArgument when it is not one for this keelman and Python."""
        try:
            with tarfile.open(file, "r:gz") as archive:
                first = archive.next()
                text = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
                pack = cls(file=file, **json.loads(text.read())) if text is not None else None
        except (OSError, tarfile.TarError, ValueError, TypeError) as error:
            raise InvalidArgument.of("spark.pack", str(file), f"an archive of `keelman spark pack` ({error})") from None
        if pack is None:
            raise InvalidArgument.of("spark.pack", str(file), "an archive of `keelman spark pack`")
        for what, theirs, ours in (
            ("Python", pack.python, python_version()),
            ("keelman", pack.version, metadata.version("keelman")),
        ):
            if theirs != ours:
                raise InvalidArgument.of(
                    "spark.pack",
                    str(file),
                    f"a pack made with {what} {ours}, which runs here; this one is of {what} {theirs}: "
                    "make it again with `keelman spark pack`",
                )
        return pack


def make_pack(file: Path, *, level: int = 6) -> Pack:
    """Makes the archive; it appears complete or not at all. `level` is gzip's.

    Raises FailedPrecondition when a package that slots need is not installed, InvalidArgument for a file that cannot be
    written.
    """
    distributions = installed(ROOTS)
    contents = {name: list(_files(dist)) for name, dist in sorted(distributions.items()) if name != "keelman"}
    contents["keelman"] = list(_own_files())
    sizes = {name: sum(path.stat().st_size for path, _ in files) for name, files in contents.items()}
    pack = Pack(
        file=file,
        version=metadata.version("keelman"),
        python=python_version(),
        platform=sysconfig.get_platform(),
        packages={name: dist.version for name, dist in sorted(distributions.items())},
        sizes=sizes,
    )
    manifest = {k: v for k, v in asdict(pack).items() if k != "file"}
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with tarfile.open(half, "w:gz", compresslevel=level) as archive:
            _add_text(archive, MANIFEST, json.dumps(manifest, indent=1))
            for files in contents.values():
                for path, name in files:
                    archive.add(path, name, recursive=False, filter=_anonymous)
        half.replace(file)
    except OSError as error:
        raise InvalidArgument.of("--output", str(file), f"a file that can be written ({error.strerror})") from None
    finally:
        half.unlink(missing_ok=True)
    return pack


def installed(roots: Sequence[str]) -> dict[str, metadata.Distribution]:
    """Returns the named distributions and all that they require, by normal name. Raises FailedPrecondition."""
    from packaging.requirements import Requirement  # noqa: PLC0415  (only here)
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    distributions: dict[str, metadata.Distribution] = {}
    done: set[tuple[str, str]] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        requirement = waiting.pop()
        name = str(canonicalize_name(requirement.name))
        try:
            dist = distributions.setdefault(name, metadata.distribution(name))
        except metadata.PackageNotFoundError:
            raise FailedPrecondition(
                f"{requirement.name} is not installed, which slots need: pip install 'keelman[spark]'",
                reason="PACKAGE_MISSING",
            ) from None
        for extra in {"", *requirement.extras}:
            if (name, extra) in done:
                continue
            done.add((name, extra))
            needs = [Requirement(line) for line in dist.requires or ()]
            waiting += [n for n in needs if n.marker is None or n.marker.evaluate({"extra": extra})]
    return distributions


def python_version() -> str:
    """Returns the major and minor version, which executors must share with this service."""
    return "{}.{}".format(*sys.version_info)


def _files(dist: metadata.Distribution) -> Iterator[tuple[Path, str]]:
    for entry in dist.files or ():
        name = entry.as_posix()
        path = Path(str(entry.locate()))
        if name.startswith("..") or _left_out(name) or not path.is_file():
            continue  # scripts are outside, and a file may have been removed since
        yield path, name


def _own_files() -> Iterator[tuple[Path, str]]:
    for root in keelman.__path__:
        for part in PARTS:
            for path in sorted(Path(root, part).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path, f"keelman/{path.relative_to(root).as_posix()}"


def _left_out(name: str) -> bool:
    module = name.rpartition("/")[2]
    return (
        name.startswith(LEFT_OUT)
        or name.endswith(LEFT_OUT_ENDS)
        or (name.startswith("pyarrow/") and any(part in module for part in LEFT_OUT_PARTS))
        or (name.startswith("numpy/") and "/tests/" in name)
    )


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(text.encode()), 0o644
    archive.addfile(info, io.BytesIO(text.encode()))


def main(arguments: Sequence[str]) -> int:
    """Runs `keelman spark pack`: makes the archive, prints its size and contents. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="keelman spark pack", description=__doc__, allow_abbrev=False)
    default = f"{FOLDER}-{metadata.version('keelman')}-py{python_version()}.tar.gz"
    parser.add_argument("--output", type=Path, default=Path(default), metavar="FILE", help=f"the archive [{default}]")
    file: Path = parser.parse_args(arguments).output
    try:
        if not file.name.endswith((".tar.gz", ".tgz")):
            raise InvalidArgument.of(
                "--output", str(file), "a file name ending with .tar.gz, by which Spark unpacks it"
            )
        pack = make_pack(file)
    except KeelmanError as error:
        print(f"keelman spark pack: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1
    print("\n".join(described(pack)))
    return 0


def described(pack: Pack) -> Iterator[str]:
    """Yields lines about a pack for people, largest packages first."""
    mib = 1 << 20
    for name, size in sorted(pack.sizes.items(), key=lambda item: -item[1]):
        yield f"{size / mib:8.1f} MiB  {name} {pack.packages[name]}"
    yield f"{pack.file}: {pack.file.stat().st_size / mib:.1f} MiB, {len(pack.packages)} packages"
    yield f"for executors with Python {pack.python} on {pack.platform} and Spark; name it in the setting spark.pack"
