"""Clients of other languages, generated from protos/ by their tools: TLS by the installation's CA, and a token."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keelman.model.access.roles import token_digest
from support.certificates import Authority
from support.places import ROOT
from support.state.trust import installation

pytestmark = pytest.mark.component
PROGRAMS, PROTOS = ROOT / "tests" / "support" / "grpc_clients", ROOT / "protos"
TOKEN = "kt_of-a-program"
MODULE = "example.test/client/gen"
GENERATE = {
    "version": "v2",
    "managed": {"enabled": True, "override": [{"file_option": "go_package_prefix", "value": MODULE}]},
    "plugins": [
        {"local": ["go", "tool", plugin], "out": "gen", "opt": "paths=source_relative"}
        for plugin in ("protoc-gen-go", "protoc-gen-go-grpc")
    ],
}
"""For buf: Go code of all protos."""


@dataclass(frozen=True, slots=True)
class Gateway:
    address: str
    authority: Path
    other: Path
    """Another CA, which has nothing to do with it."""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    access, other = tmp_path / "access.toml", tmp_path / "other.pem"
    access.write_text(f'[[token]]\nname = "program"\nrole = "admin"\nsha256 = "{token_digest(TOKEN)}"\n')
    access.chmod(0o600)
    other.write_text(Authority().pem)
    async with installation(tmp_path / "i", access=access) as installed:
        yield Gateway(installed.gateway, installed.state_home.authority, other)


async def ran(words: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program that has ended."""
    return await asyncio.to_thread(
        subprocess.run, words, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


async def tools(folder: Path, *lines: Sequence[str]) -> None:
    """Runs the commands that fetch tools and generate a client's code; skips the test if that fails."""
    for line in lines:
        done = await ran(line, folder)
        if done.returncode:
            pytest.skip(f"{' '.join(line[:3])}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


async def judged(program: Sequence[str], folder: Path, gateway: Gateway, name: str, *more: str) -> None:
    """The program gets the right answers with the right CA, and sends nothing to a gateway of another."""
    done = await ran([*program, gateway.address, str(gateway.authority), TOKEN, name, *more], folder)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert -60 < document.pop("age") < 120
    assert [word.replace("_", "").lower() for word in (document["unknown"][0], document["taken"][0])] == [
        "unauthenticated", "alreadyexists",
    ]  # fmt: skip
    assert (document["unknown"][1], document["taken"][1]) == ("NO_CREDENTIALS", "ALREADY_EXISTS")
    assert (document["made"], document["seen"]) == (name, name)
    done = await ran([*program, gateway.address, str(gateway.other), TOKEN, name, *more], folder)
    assert done.returncode != 0
    assert "certificate" in done.stderr


@pytest.mark.slow
async def test_a_program_in_go(gateway: Gateway, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    folder = tmp_path / "go"
    folder.mkdir()
    for file in ("main.go", "go.mod", "go.sum"):
        shutil.copy(PROGRAMS / file, folder)
    buf = str(Path(sys.executable).with_name("buf"))
    await tools(folder, [go, "mod", "download"])
    outcome = await ran([buf, "generate", str(PROTOS), "--template", json.dumps(GENERATE)], folder)
    assert outcome.returncode == 0, outcome.stderr
    built = await ran([go, "build", "-o", "client", "."], folder)
    assert built.returncode == 0, built.stderr
    await judged([str(folder / "client")], folder, gateway, "by-go")


async def test_a_program_in_javascript(gateway: Gateway, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js is not installed")
    folder = tmp_path / "node"
    folder.mkdir()
    for file in ("main.mjs", "package.json"):
        shutil.copy(PROGRAMS / file, folder)
    await tools(folder, [npm, "install", "--prefer-offline", "--no-audit", "--no-fund"])
    await judged([node, "main.mjs"], folder, gateway, "by-node", str(PROTOS))
