"""Files that are opened for connectors: nothing leads out of the folders that a policy allows."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from keelman.connect.errors import ConnectError
from keelman.connect.policy import folders
from keelman.connect.policy.folders import PathOutside, hold_files, is_inside, open_file
from keelman.connectors.file.appending import AppendedFile
from keelman.connectors.file.former_files import open_regular
from keelman.connectors.file.packed_files import first_bytes

READ = os.O_RDONLY | os.O_CLOEXEC


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    hold_files({"keelman.policy.paths.allowed": str(folder)})
    yield folder
    hold_files({})


def content(path: Path) -> str:
    descriptor = open_file(path, READ)
    with os.fdopen(descriptor) as file:
        return file.read()


def test_files_inside_are_opened_also_by_links(inside: Path) -> None:
    (inside / "a").write_text("a")
    (inside / "link").symlink_to("a")
    (inside.parent / "from-outside").symlink_to(inside)
    assert content(inside / "a") == content(inside / "link") == content(inside.parent / "from-outside" / "a") == "a"
    descriptor = open_file(inside / "new", os.O_CREAT | os.O_WRONLY)
    os.close(descriptor)
    assert (inside / "new").exists()


def test_links_and_dots_do_not_lead_out(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "secret")
    (inside / "folder").symlink_to(inside.parent)
    for path in ("link", "folder/secret", "../secret", "folder/data/../secret", str(inside.parent / "secret")):
        for open_one in (content, open_regular, AppendedFile):
            with pytest.raises(PathOutside, match="leads out of the folders"):
                open_one(inside / path)  # type: ignore[operator]
    with pytest.raises(PathOutside):  # it is not told whether there is such a folder
        open_file(inside.parent / "none" / "x", READ)
    (inside / "packed.gz").symlink_to(inside.parent / "secret")
    assert first_bytes(str(inside / "packed.gz"), 10) is None
    (inside / "made").symlink_to(inside.parent / "made")
    with pytest.raises(PathOutside):
        open_file(inside / "made", os.O_CREAT | os.O_WRONLY)
    assert not (inside.parent / "made").exists()


def test_a_link_that_takes_the_file_s_place_later_is_not_followed(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, judged, calls = inside / "file", folders.is_inside, itertools.count(1)
    path.write_text("mine")

    def judged_then_swapped(name: str, allowed: folders.Folders) -> bool:
        answer = judged(name, allowed)
        if next(calls) == 2:  # the last time
            path.unlink()
            path.symlink_to(inside.parent / "secret")
        return answer

    monkeypatch.setattr(folders, "is_inside", judged_then_swapped)
    with pytest.raises(PathOutside, match="a link has taken its place"):
        content(path)


def test_a_folder_that_is_swapped_later_is_not_entered(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inside / "sub").mkdir()
    (inside / "sub" / "secret").write_text("mine")
    opened = os.open

    def swapped_then_opened(path: str, flags: int, *more: int, **by_name: int) -> int:
        if path == str(inside / "sub"):
            (inside / "sub").rename(inside / "away")
            (inside / "sub").symlink_to(inside.parent)
        return opened(path, flags, *more, **by_name)

    monkeypatch.setattr(os, "open", swapped_then_opened)
    with pytest.raises(PathOutside):
        open_file(inside / "sub" / "secret", READ)


def test_other_errors_stay_as_they_are(inside: Path) -> None:
    assert open_regular(str(inside / "none")) is None
    with pytest.raises(ConnectError, match="not a regular file"):
        open_regular(str(inside))
    assert not is_inside("", ["/"])
    assert not is_inside("relative", ["/"])
    assert is_inside("/anything", ["/"])
