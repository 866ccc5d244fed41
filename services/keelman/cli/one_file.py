"""Finds the connector classes in one Python file, and builds a folder from it that a worker loads as a plugin.

Run as a program, with the file as its argument, it imports the file and prints its classes as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import shutil
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keelman.connect.plugin import Connector
from keelman.connectors.plugins.plugin_path import GROUP
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.error_text import error_text
from keelman.runtime.processes.die_with_parent import tethered

IMPORT_SECONDS = 60.0
NEEDED = ("names", "version", "direction", "runs_on")


class ImportFault(FailedPrecondition):
    """The file cannot be imported, or contains no connector."""


@dataclass(frozen=True, slots=True)
class FileClass:
    """A connector's class: its name in the file, and its name in configurations."""

    attribute: str
    name: str


@dataclass(frozen=True, slots=True)
class OneFile:
    """The file. It can import the other modules of its folder, as a program can."""

    path: Path

    @classmethod
    def of(cls, path: Path) -> OneFile:
        """Raises InvalidArgument for a path that is no Python file, or that cannot be imported by its name."""
        absolute = path.expanduser().absolute()
        if absolute.suffix != ".py" or not absolute.is_file():
            raise InvalidArgument.of("FILE", str(path), "an existing Python file, such as ticks.py")
        if not absolute.stem.isidentifier() or absolute.stem in sys.stdlib_module_names or absolute.stem == "keelman":
            raise InvalidArgument.of(
                "FILE", str(path), "a file whose name is a module name, and not that of a module of Python's"
            )
        return cls(absolute)

    def stamps(self) -> dict[Path, int]:
        """Returns the time of the last change of each module in the file's folder: any change alters the result."""
        stamps: dict[Path, int] = {}
        for source in self._modules():
            for file in [source] if source.is_file() else source.rglob("*.py"):
                with contextlib.suppress(OSError):  # it has just been replaced
                    stamps[file] = file.stat().st_mtime_ns
        return stamps

    async def classes(self) -> list[FileClass]:
        """Returns the connectors of the file, which it imports in a separate process.

        Raises ImportFault with file and line for an import that fails, and for a file without connectors.
        """
        process = await asyncio.create_subprocess_exec(
            *tethered([sys.executable, "-B", "-m", "keelman.cli.one_file", str(self.path)]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(IMPORT_SECONDS):
                out, _ = await process.communicate()
            answer = json.loads(out)
        except TimeoutError:
            raise ImportFault(f"{self.path.name}: its import takes longer than {IMPORT_SECONDS:g} s") from None
        except ValueError:
            raise ImportFault(f"{self.path.name}: its import ended the process ({process.returncode})") from None
        finally:
            if process.returncode is None:
                process.kill()
        if "error" in answer:
            raise ImportFault(answer["error"])
        return [FileClass(**entry) for entry in answer["classes"]]

    def lay_out(self, folder: Path, classes: Sequence[FileClass]) -> None:
        """Turns a folder into an installed plugin of these classes, which imports the files from their own place."""
        shutil.rmtree(folder, ignore_errors=True)
        metadata = folder / f"{self.path.stem}-0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {self.path.stem}\nVersion: 0\n")
        entries = "".join(f"{file_class.name} = {self.path.stem}:{file_class.attribute}\n" for file_class in classes)
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}")
        for source in self._modules():
            (folder / source.name).symlink_to(source)

    def _modules(self) -> list[Path]:
        entries = self.path.parent.iterdir()
        return sorted(p for p in entries if p.suffix == ".py" or (p / "__init__.py").is_file())


def choose_class(classes: Sequence[FileClass], class_text: str) -> FileClass:
    """Returns the class with this name, in the file or in configurations, or the only class. Raises InvalidArgument
    with the names of all classes."""
    named = [
        file_class
        for file_class in classes
        if not class_text or class_text in (file_class.attribute, file_class.name, file_class.name.rpartition(".")[2])
    ]
    if len(named) == 1:
        return named[0]
    legal = ", ".join(file_class.attribute for file_class in classes)
    raise (
        InvalidArgument(f"--class: the file has several connector classes: choose one of {legal}")
        if not class_text
        else InvalidArgument.of("--class", class_text, legal)
    )


def look(file: Path) -> Mapping[str, Any]:
    """Imports the file in this process; returns its classes, or its error and the place of it."""
    sys.path.insert(0, str(file.parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(file.stem)
    except BaseException as error:  # also sys.exit
        return {"error": f"{_place(error, file)}: {type(error).__name__}: {_text_of(error)}"}
    pairs = [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Connector) and value.__module__ == module.__name__
    ]
    lacking = {name: _missing(connector) for name, connector in pairs}
    classes = [FileClass(name, connector.names[0]) for name, connector in pairs if not lacking[name]]
    if classes:
        return {"classes": [asdict(file_class) for file_class in classes]}
    if not pairs:
        return {"error": f"{file.name}: has no subclass of keelman.connect.plugin.Connector"}
    name, connector = min(pairs, key=lambda each: len(lacking[each[0]]))  # the others are its base classes
    return {
        "error": f"{file.name}:{inspect.getsourcelines(connector)[1]}: class {name} lacks {', '.join(lacking[name])}"
    }


def _missing(connector: type[Connector]) -> list[str]:
    return [a for a in NEEDED if not hasattr(connector, a)] + sorted(getattr(connector, "__abstractmethods__", ()))


def _text_of(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else error_text(error)


def _place(error: BaseException, file: Path) -> str:
    """Returns where in the file's folder the import failed, as file:line."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(Path(error.filename), file)}:{error.lineno}"
    places = [(Path(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    inside = [(path, line) for path, line in places if path.is_relative_to(file.parent)]
    return f"{_relative(inside[-1][0], file)}:{inside[-1][1]}" if inside else file.name


def _relative(path: Path, file: Path) -> str:
    return str(path.relative_to(file.parent)) if path.is_relative_to(file.parent) else str(path)


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
