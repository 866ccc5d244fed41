"""Refusals of untrusted archives, each with its rule and entry."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from keelman.workers.plugins.archive import ArchiveRefused, Bounds, open_tar_gz, open_zip, unpack

SMALL = Bounds(entries=10, total_bytes=1 << 20, ratio=50, ratio_from_bytes=1 << 16, directory_bytes=1 << 16)


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return target.getvalue()


def tarred(*members: tuple[tarfile.TarInfo | str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def paths_of_zip(data: bytes, bounds: Bounds = SMALL, *, is_jar: bool = False) -> list[str]:
    with open_zip(io.BytesIO(data), len(data), bounds, is_jar=is_jar) as archive:
        return [entry.path for entry in archive.entries]


def paths_of_tar(data: bytes, bounds: Bounds = SMALL) -> list[str]:
    with open_tar_gz(io.BytesIO(data), len(data), bounds) as archive:
        return [entry.path for entry in archive.entries]


def refused(rule: str, entry: str, data: bytes, *, is_jar: bool = False) -> str:
    read = paths_of_tar if data[:2] == b"\x1f\x8b" else paths_of_zip
    options = {"is_jar": is_jar} if read is paths_of_zip else {}
    with pytest.raises(ArchiveRefused) as caught:
        read(data, **options)
    assert caught.value.metadata == {"rule": rule, "entry": entry}
    assert rule in caught.value.message
    assert entry == "" or repr(entry) in caught.value.message
    return caught.value.message


NAMES = [
    ("../evil.jar", "parent-path"),
    ("lib/../../evil.jar", "parent-path"),
    ("/etc/passwd", "absolute-path"),
    ("C:/windows/evil.jar", "absolute-path"),
    ("lib\\evil.jar", "backslash"),
    ("lib/new\nline.jar", "name"),
    (".", "name"),
    ("x" * 300, "name"),
]


@pytest.mark.parametrize(("name", "rule"), NAMES)
@pytest.mark.parametrize("make", [zipped, tarred])
def test_names_that_lead_elsewhere(name, rule, make):
    refused(rule, name[:200], make((name, b"x")))


def test_a_name_with_nul():
    data = zipped(("good.jar/evil", b"x")).replace(b"good.jar/evil", b"good.jar\0evil")
    refused("name", "good.jar\0evil", data)


def test_links_and_devices():
    link = zipfile.ZipInfo("lib/link.jar")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused("link", "lib/link.jar", zipped((link, b"/etc/passwd")))
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE):
        member = tarfile.TarInfo("lib/link.jar")
        member.type, member.linkname = kind, "../../etc/passwd"
        refused("link", "lib/link.jar", tarred((member, b"")))


def test_folders_with_the_mode_that_mavens_older_archivers_give(tmp_path):
    folder = zipfile.ZipInfo("META-INF/")
    folder.external_attr = 0xFFFF << 16
    data = zipped((folder, b""), ("META-INF/MANIFEST.MF", b"x"))
    assert paths_of_zip(data, is_jar=True) == ["META-INF/MANIFEST.MF"]
    as_file = zipfile.ZipInfo("lib")
    as_file.external_attr = stat.S_IFDIR << 16
    refused("link", "lib", zipped((as_file, b"x")))


def test_encrypted_entries_and_other_methods():
    data = bytearray(zipped(("a.jar", b"secret")))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    refused("encrypted", "a.jar", bytes(data))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.jar", b"x" * 100)
    refused("method", "a.jar", target.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_come_twice():
    refused("duplicate", "a.jar", zipped(("a.jar", b"1"), ("a.jar", b"2")))
    refused("duplicate", "lib/a.jar", zipped(("lib/a.jar", b"1"), ("lib//a.jar", b"1")))
    refused("duplicate", "lib", zipped(("lib/a.jar", b"1"), ("lib", b"2")))
    refused("duplicate", "lib", tarred(("lib", b"1"), ("lib/a.jar", b"2")))
    refused("duplicate", "a.jar", tarred(("a.jar", b"1"), ("a.jar", b"1")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_jar_may_have_the_same_file_twice_and_not_another():
    assert paths_of_zip(zipped(("LICENSE", b"1"), ("LICENSE", b"1")), is_jar=True) == ["LICENSE"]
    refused("duplicate", "LICENSE", zipped(("LICENSE", b"1"), ("LICENSE", b"2")), is_jar=True)


def test_bombs():
    zeros = b"\0" * (1 << 17)
    refused("ratio", "a", zipped(("a", zeros)))
    message = refused("ratio", "", tarred(("a", zeros)))
    assert "50 times" in message
    refused("ratio", "", zipped(*[(f"{n}", zeros[: 1 << 15]) for n in range(8)]))  # small, but too large together
    refused("entries", "", zipped(*[(f"{n}", b"") for n in range(11)]))
    refused("entries", "", tarred(*[(f"{n}", b"") for n in range(11)]))
    with pytest.raises(ArchiveRefused, match="total-size"):
        paths_of_zip(zipped(("a", zeros)), Bounds(total_bytes=1000, ratio=100_000))
    with pytest.raises(ArchiveRefused, match="total-size"):
        paths_of_tar(tarred(("a", zeros)), Bounds(total_bytes=1000, ratio=100_000))


def test_entries_that_share_their_bytes():
    data = bytearray(zipped(("a", b"1" * 100), ("b", b"1" * 100)))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<I", data, second + 42, 0)  # at the place of the first entry's header
    refused("overlap", "b", bytes(data))


def test_a_directory_that_is_larger_than_it_may_be_is_not_read():
    data = zipped(*[(f"{'n' * 200}{n}", b"") for n in range(9)])
    with pytest.raises(ArchiveRefused, match="directory"):
        paths_of_zip(data, Bounds(directory_bytes=1500))


def test_headers_of_a_tar_that_want_memory():
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a")
        member.pax_headers = {"comment": "x" * (2 << 20)}
        archive.addfile(member)
    with pytest.raises(ArchiveRefused):
        paths_of_tar(target.getvalue(), Bounds())


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"PK\x05\x06", b"no archive at all" * 10])
def test_what_is_no_zip(data):
    with pytest.raises(ArchiveRefused, match="broken"):
        paths_of_zip(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x1f\x8b", gzip.compress(b"no tar" * 200), gzip.compress(b"x" * 600)[:-9]],
    ids=["empty", "begun", "no tar", "cut"],  # a compressed text has the time in it
)
def test_what_is_no_tar(data):
    if data:
        with pytest.raises(ArchiveRefused, match="broken"):
            paths_of_tar(data)
    else:
        with pytest.raises(ArchiveRefused):
            paths_of_tar(data)


def test_content_that_is_not_what_its_sum_says(tmp_path):
    data = bytearray(zipped((zipfile.ZipInfo("a.txt"), b"content")))  # stored
    data[data.index(b"content")] ^= 1
    with (
        open_zip(io.BytesIO(bytes(data)), len(data), SMALL) as archive,
        pytest.raises(ArchiveRefused, match=r"broken.*a\.txt"),
    ):
        unpack(archive, tmp_path)


def test_what_is_legal_is_unpacked(tmp_path: Path):
    entries = [("./lib/a.jar", b"1"), ("lib/deep/b.jar", b"22"), ("README", b"")]
    folder = tarfile.TarInfo("./lib")
    folder.type = tarfile.DIRTYPE
    top = tarfile.TarInfo("./")
    top.type = tarfile.DIRTYPE
    for number, data in enumerate((zipped(*entries, ("lib/", b"")), tarred((top, b""), (folder, b""), *entries))):
        target = tmp_path / str(number)
        target.mkdir()
        opened = open_zip if number == 0 else open_tar_gz
        with opened(io.BytesIO(data), len(data), SMALL) as archive:
            unpack(archive, target)
        actual_bytes = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
        assert actual_bytes == {"lib/a.jar": b"1", "lib/deep/b.jar": b"22", "README": b""}
