"""Generates the wire types under libs/keelman/api from protos/: a build hook, and a command for `make protos`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a command where hatchling is not installed
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent.parent


def generate(root: Path) -> list[Path]:
    """Writes the Python modules, stubs and typed gRPC stubs of every proto; returns the files that protoc read."""
    out = root / "libs"
    protos = sorted((root / "protos").rglob("*.proto"))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={root / 'protos'}",
            f"--plugin=protoc-gen-mypy={plugin('protoc-gen-mypy')}",
            f"--plugin=protoc-gen-mypy_grpc={plugin('protoc-gen-mypy_grpc')}",
            f"--python_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_out={out}",
            f"--mypy_grpc_out={out}",
            *(str(p) for p in protos),
        ],
        check=True,
    )
    for folder in {p.relative_to(root / "protos").parent for p in protos}:
        for package in (folder, *folder.parents):
            if package.parts[:2] == ("keelman", "api"):
                (out / package / "__init__.py").touch()
    (out / "keelman" / "api" / "py.typed").touch()
    for module in out.glob("keelman/api/*/v1/*_pb2_grpc.py"):  # protos without a service leave an empty one
        if "class " not in module.read_text():
            module.unlink()
    return protos


def plugin(name: str) -> str:
    """The path of a plugin of protoc: of this Python's environment, else of the PATH that pip gives an isolated build,
    where programs are not beside the interpreter. Raises FileNotFoundError."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(f"{name} is not on the PATH: it comes with the package mypy-protobuf")
    return found


class ProtoBuildHook(BuildHookInterface):
    """Runs before every wheel and editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling."""
        generate(Path(self.root))


if __name__ == "__main__":
    print(f"{len(generate(ROOT))} protos")
