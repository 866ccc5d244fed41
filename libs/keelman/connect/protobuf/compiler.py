"""Compiles the text of a Protobuf schema into its messages.

It runs as a separate process, once for each schema, so that no registered text can do harm in ours.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from keelman.connect.errors import DataError, RetriableConnectError
from keelman.connect.protobuf.names import KNOWN_FILES, META_FILE

SECONDS = 8.0
"""A slot whose loop is silent for longer is recycled."""
_MAIN = "keelman/schema.proto"
_META_USED = re.compile(r"\(\s*\.?confluent\.\w+_meta\s*\)")
_META_IMPORTED = re.compile(rf'^\s*import\s+(?:public\s+)?["\']{META_FILE}["\']', re.MULTILINE)
_SYNTAX = re.compile(r'^\s*(?:syntax|edition)\s*=\s*["\'][^"\']*["\']\s*;', re.MULTILINE)
# Loads only the compiler's own extension, not the usual start of a Python process: 0.03 s of CPU, not 0.1.
_PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from grpc_tools import _protoc_compiler
sys.exit(_protoc_compiler.run_main([word.encode() for word in ["protoc", *sys.argv[1:]]]))
"""


class CompilerAway(RetriableConnectError):
    """Protobuf's compiler cannot be run; no record is at fault."""

    tolerable = False


class CompiledSchema:
    """The messages of one schema, isolated from all other schemas."""

    def __init__(self, files: descriptor_pb2.FileDescriptorSet) -> None:
        """`files`: imported files come before their importers. Raises DataError."""
        self._pool = DescriptorPool()
        try:
            for file in files.file:
                self._pool.AddSerializedFile(file.SerializeToString())
            self._pool.FindFileByName(_MAIN)  # raises if any of it is invalid
        except (TypeError, KeyError) as error:
            raise DataError(f"The Protobuf schema is not sound: {error}") from None
        file = files.file[-1]
        self._roots = [
            self._pool.FindMessageTypeByName(_joined(file.package, message.name)) for message in file.message_type
        ]

    def by_name(self, full_name: str) -> Descriptor:
        """Returns a message of the schema's own file. Raises DataError."""
        try:
            message = self._pool.FindMessageTypeByName(full_name)
            if message.file.name == _MAIN:
                return message
        except KeyError:
            pass
        raise DataError(f"The Protobuf schema has no message {full_name}")

    def by_indexes(self, indexes: Sequence[int]) -> Descriptor:
        """Returns a message by the indexes of its enclosing messages, outermost first, and its own. Raises
        DataError."""
        level, message = self._roots, None
        for index in indexes:
            if not 0 <= index < len(level):
                raise DataError(f"The Protobuf schema has no message with the indexes {list(indexes)}")
            message = level[index]
            level = _nested(message)
        if message is None:
            raise DataError("The payload has no message index")
        return message

    def indexes(self, message: Descriptor) -> list[int]:
        """Returns the indexes of a message: the inverse of `by_indexes`."""
        above = message.containing_type
        level = self._roots if above is None else _nested(above)
        place = [sibling.full_name for sibling in level].index(message.full_name)
        return [place] if above is None else [*self.indexes(above), place]


def compiled(text: str, references: Mapping[str, str]) -> CompiledSchema:
    """Returns the compiled schema; `references` are the texts of the imported files, by their names in the imports.

    Google's files and Confluent's may be left out. Raises DataError with the compiler's message, and
    CompilerAway when it cannot be run.
    """
    outcome = _outcome(text, tuple(references.items()))
    if isinstance(outcome, DataError):
        raise DataError(str(outcome))
    return outcome


@lru_cache(maxsize=256)
def _outcome(text: str, references: tuple[tuple[str, str], ...]) -> CompiledSchema | DataError:
    """Caches errors, too: thousands of records may have the same schema."""
    try:
        return CompiledSchema(_files({**dict(references), _MAIN: text}))
    except DataError as error:
        return error


def _nested(message: Descriptor) -> list[Descriptor]:
    """Returns the nested messages in the text of one, without the generated ones for entries of maps."""
    return [nested_type for nested_type in message.nested_types if not nested_type.GetOptions().map_entry]


def _files(texts: Mapping[str, str]) -> descriptor_pb2.FileDescriptorSet:
    with tempfile.TemporaryDirectory(prefix="keelman-protobuf-") as folder:
        root = Path(folder)
        for name, text in {**KNOWN_FILES, **texts}.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\0" in name or len(name) > 200:
                raise DataError(f"{name[:200]!r} is no name for a Protobuf file to import")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(with_meta(text) if name in texts else text, encoding="utf-8", errors="replace")
        out = root / "compiled.bin"
        words = [
            f"-I{root}",
            *(f"-I{folder}" for folder in _folders()),
            "--include_imports",
            f"--descriptor_set_out={out}",
        ]
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _site(), *words, _MAIN],
                capture_output=True,
                check=False,
                timeout=SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompilerAway(f"Protobuf's compiler cannot be run: {error}") from None
        if done.returncode or not out.exists():
            message = done.stderr.decode(errors="replace").strip().replace(_MAIN, "schema").replace("\n", "; ")
            reason = message or f"the compiler ended with {done.returncode}"
            raise DataError(f"The Protobuf schema cannot be compiled: {reason[:2000]}")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def with_meta(text: str) -> str:
    """Adds the import of Confluent's options if the text uses them without it: its clients register such texts."""
    if not _META_USED.search(text) or _META_IMPORTED.search(text):
        return text
    line = f' import "{META_FILE}";'
    syntax = _SYNTAX.search(text)
    return f"{line} {text}" if syntax is None else text[: syntax.end()] + line + text[syntax.end() :]


def _joined(package: str, name: str) -> str:
    return f"{package}.{name}" if package else name


@cache
def _folders() -> tuple[str, ...]:
    import google.rpc.code_pb2  # noqa: PLC0415  to find their folders only
    import grpc_tools  # noqa: PLC0415

    common = Path(google.rpc.code_pb2.__file__).parents[2]
    return str(Path(grpc_tools.__file__).parent / "_proto"), str(common)


@cache
def _site() -> str:
    import grpc_tools  # noqa: PLC0415

    return str(Path(grpc_tools.__file__).parents[1])
