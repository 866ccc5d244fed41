"""keelman as installed without a checkout: the source distribution, a wheel made of that, an empty venv."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.cli.system import Keelman, numbered
from support.places import ROOT

pytestmark = pytest.mark.e2e


def ran(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a venv with keelman's wheel in it, and with the dependencies of this test environment."""
    ran(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path / "dist", folder=ROOT)
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    ran(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", sdist, folder=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    ran(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", folder=tmp_path)
    new_python = tmp_path / "venv" / "bin" / "python"
    ran(sys.executable, "-m", "pip", "--python", new_python, "install", "-q", "--no-deps", wheel, folder=tmp_path)
    site = Path(
        ran(new_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip()
    )
    # Only the folder itself: the checkout, which its .pth files name, is not on the path.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    result = ran(new_python, "-c", "import keelman.cli.main as m; print(m.__file__)", folder=tmp_path)
    assert result.startswith(str(site))
    return new_python


async def test_a_wheel_in_an_empty_venv_copies_a_file(own: Keelman, python: Path, tmp_path: Path) -> None:
    assert "keelman" in ran(python.with_name("keelman"), "--version", folder=tmp_path)
    path, output = tmp_path / "given.txt", tmp_path / "copied.txt"
    path.write_bytes(numbered(0, 100_000))
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", "keelman.cli.demo", "--home", str(own.home), "--free-ports"),
        env={**own.environment, "INPUT": str(path), "OUTPUT": str(output), "ONCE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
    )
    async with asyncio.timeout(300):
        out, _ = await process.communicate()
    assert process.returncode == 0, f"{out.decode()}\n{own.logs()}"
    assert output.read_bytes() == path.read_bytes()
