"""Archives of all kinds, whole and damaged: they are refused, or unpacked below their folder."""

import io
import stat
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.workers.plugins.archive import ArchiveRefused, Bounds, unpack
from keelman.workers.plugins.class_file import ClassFile, InvalidClassFile, read_class
from keelman.workers.plugins.inspection import inspect, opened
from support.plugins import jar_files as java

BOUNDS = Bounds(entries=20, total_bytes=1 << 16, ratio=100, ratio_from_bytes=1 << 12, directory_bytes=1 << 14)
PART = st.sampled_from(["a", "b", "..", ".", "", "META-INF", "x.jar", "y.whl", "C:", "\\", "\0", "\n", "\u00e9"])
NAME = st.lists(PART, min_size=1, max_size=4).map("/".join).filter(bool)
WEATHER = java.class_bytes("com/acme/Weather", java.SOURCE)
JAR = java.jar_bytes([WEATHER])
CONTENT = st.sampled_from([b"", b"text", b"\0" * 9000, JAR, WEATHER])
KINDS = st.sampled_from([stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR, 0])
ENTRIES = st.lists(st.tuples(NAME, CONTENT, KINDS), max_size=6)
TYPES = {stat.S_IFLNK: tarfile.SYMTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFCHR: tarfile.CHRTYPE}


def zipped(entries: list[tuple[str, bytes, int]]) -> bytes:
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # repeated names
        for name, content, kind in entries:
            info = zipfile.ZipInfo(name)
            info.filename = name  # unchanged, with a NUL
            info.external_attr = (kind | 0o644) << 16
            archive.writestr(info, content)
    return target.getvalue()


def tarred(entries: list[tuple[str, bytes, int]]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content, kind in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = TYPES.get(kind, tarfile.REGTYPE), "../../x"
            info.size = len(content) if info.type == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def judged(data: bytes, file_name: str) -> bool:
    """Whether a file is unpacked and not refused; checks that no file or link appears elsewhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "outer" / "inner"
        folder.mkdir(parents=True)
        path = Path(name) / file_name
        path.write_bytes(data)
        try:
            result = inspect(path, bounds=BOUNDS)
            assert result.kind is not None
            with opened(path, result.kind, bounds=BOUNDS) as archive:
                unpack(archive, folder)
        except ArchiveRefused:
            return False
        finally:
            outside = [p for p in Path(name).rglob("*") if folder not in p.parents]
            assert set(outside) <= {path, folder, folder.parent}, "nothing is written elsewhere"
        assert all(not p.is_symlink() and (p.is_file() or p.is_dir()) for p in folder.rglob("*"))
        assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) <= BOUNDS.total_bytes
        return True


@settings(max_examples=60, deadline=None)
@given(ENTRIES, st.sampled_from(["x.zip", "x.jar", "x.whl"]))
def test_zips(entries: list[tuple[str, bytes, int]], file_name: str) -> None:
    names = [name for name, _, _ in entries]
    evil = any(".." in n.split("/") or n.startswith("/") or {*n} & {*"\\\0\n"} for n in names)
    links = any(kind in (stat.S_IFLNK, stat.S_IFCHR) for _, _, kind in entries)
    assert not (judged(zipped(entries), file_name) and (evil or links))


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_tars(entries: list[tuple[str, bytes, int]]) -> None:
    files = [name.partition("\0")[0] for name, _, kind in entries if TYPES.get(kind) != tarfile.DIRTYPE]
    evil = any(".." in n.split("/") or n.startswith("/") for n in files)
    links = any(kind in (stat.S_IFLNK, stat.S_IFCHR) for _, _, kind in entries)
    assert not (judged(tarred(entries), "x.tar.gz") and (evil or links))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 4000), st.sampled_from(["x.zip", "x.jar", "x.tar.gz"]), st.booleans())
def test_damaged_archives(noise: bytes, place: int, file_name: str, cut: bool) -> None:
    entries = [("lib/a.jar", JAR, stat.S_IFREG), ("README", b"text" * 50, stat.S_IFREG)]
    data = bytearray(tarred(entries) if file_name.endswith("gz") else zipped(entries))
    place %= len(data)
    data[place : place + len(noise)] = noise
    judged(bytes(data[:place] if cut and place else data) or b"x", file_name)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 400), st.booleans())
def test_damaged_class_files_are_read_or_refused(noise: bytes, place: int, cut: bool) -> None:
    data = bytearray(java.class_bytes("com/acme/Weather", java.SOURCE, [java.CONVERTER]))
    place %= len(data)
    data[place : place + len(noise)] = noise
    try:
        actual_class = read_class(bytes(data[:place] if cut else data))
    except InvalidClassFile:
        return
    assert isinstance(actual_class, ClassFile)
