"""No path, of whatever links and dots, leads out of the folders of a policy."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keelman.connect.policy.folders import PathOutside, is_inside, open_inside

NAMES = ["a", "b", "up", "out", "loop", "file"]
PARTS = st.lists(st.sampled_from([*NAMES, ".", "..", "", "data"]), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data/ is allowed; beside it a file and a folder that are not, and links to and fro."""
    top = tmp_path_factory.mktemp("paths").resolve()
    for folder in (top / "data" / "a" / "b", top / "data" / "b" / "a", top / "a", top / "database"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("inside" if top / "data" in folder.parents else "outside")
    (top / "data" / "file").write_text("inside")
    (top / "file").write_text("outside")
    (top / "data" / "up").symlink_to("..")
    (top / "data" / "a" / "up").symlink_to("../b")
    (top / "data" / "out").symlink_to(top / "a")
    (top / "a" / "out").symlink_to(top / "data" / "a")
    (top / "data" / "loop").symlink_to("loop")
    return top


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS, base=st.sampled_from(["data", ".", "data/a", "a"]))
def test_what_is_opened_is_inside(root: Path, parts: list[str], base: str) -> None:
    folder, path = (
        str(root / "data"),
        os.path.join(root, base, *[part for part in parts if part]) + "/" * (not parts[-1]),
    )
    try:
        descriptor = open_inside(path, os.O_RDONLY, 0, [[folder]])
    except (PathOutside, OSError):
        try:
            found = Path(path).read_text()
        except OSError:
            return
        assert found == "outside"  # nothing inside is refused
        return
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    assert real == folder or real.startswith(folder + "/")
    assert is_inside(path, [folder])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS)
def test_what_is_created_is_inside(root: Path, parts: list[str]) -> None:
    folder, new = root / "data", f"new-{os.getpid()}"
    path = os.path.join(folder, *[part for part in parts if part], new)
    try:
        os.close(open_inside(path, os.O_RDWR | os.O_CREAT, 0o600, [[str(folder)]]))
    except (PathOutside, OSError):
        assert list(root.rglob(new)) == []
        return
    (made,) = root.rglob(new)
    assert folder in made.resolve().parents
    made.unlink()
    shutil.rmtree(made, ignore_errors=True)
