"""Checks, in pieces and before any start, that lines of text can carry a file exactly."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import InvalidArgument

CHUNK_BYTES = 1 << 18  # less than the longest line, so that only lines that span pieces have to be measured
LONGEST_LINE_BYTES = 1_000_000  # a record has to fit into the 1 MiB that a broker takes by default
LEGAL = "legal is UTF-8 text whose every line, the last one too, ends with a single line feed"


@dataclass(frozen=True, slots=True)
class Facts:
    """A file's facts: size in bytes, number of lines, sha256 in hex."""

    path: Path
    size: int
    lines: int
    sha256: str


def check_text(path: Path) -> Facts:
    """Reads the whole file in pieces. Raises InvalidArgument with line and byte of the first illegal
    character or line."""
    try:
        if path.is_dir():
            raise InvalidArgument(f"INPUT {path}: is a folder: legal is a readable file of text lines")
        if path.exists() and not path.is_file():
            raise InvalidArgument(f"INPUT {path}: is not a regular file: legal is a readable file of text lines")
        return _read(path)
    except OSError as error:
        raise InvalidArgument(f"INPUT {path}: {error.strerror}: legal is a readable file of text lines") from None


def _read(path: Path) -> Facts:
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    size = lines = 0
    line_start = 0  # offset of the present line
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            pending = len(decoder.getstate()[0])
            problem = _problem(chunk, decoder, pending)
            if problem is not None:
                what, at = problem
                line = lines + chunk[: max(0, at)].count(b"\n") + 1
                raise InvalidArgument(f"INPUT {path}: line {line}, byte {size + at}: {what}: {LEGAL}")
            first = chunk.find(b"\n")
            longest = size + (first if first >= 0 else len(chunk)) - line_start
            if longest > LONGEST_LINE_BYTES:
                raise InvalidArgument(
                    f"INPUT {path}: line {lines + 1}, byte {line_start}: longer than {LONGEST_LINE_BYTES} bytes: "
                    "legal are lines that fit into one Kafka record"
                )
            digest.update(chunk)
            lines += chunk.count(b"\n")
            if first >= 0:
                line_start = size + chunk.rfind(b"\n") + 1
            size += len(chunk)
            last = chunk
    if not size:
        raise InvalidArgument(f"INPUT {path}: is empty: legal is a file with at least one line")
    if decoder.getstate()[0]:
        at = size - len(decoder.getstate()[0])
        raise InvalidArgument(f"INPUT {path}: line {lines + 1}, byte {at}: ends within a UTF-8 character: {LEGAL}")
    if not last.endswith(b"\n"):
        raise InvalidArgument(f"INPUT {path}: line {lines + 1}, byte {size}: no line feed at the end: {LEGAL}")
    return Facts(path, size, lines, digest.hexdigest())


def _problem(chunk: bytes, decoder: codecs.IncrementalDecoder, pending: int) -> tuple[str, int] | None:
    """Returns the first error in a piece, and its offset: negative if a bad character begins in the piece before."""
    problems: list[tuple[int, str]] = []
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError as error:
        problems.append((error.start - pending, f"not UTF-8 ({error.reason})"))
    carriage_return = chunk.find(b"\r")
    if carriage_return >= 0:
        problems.append((carriage_return, "a carriage return"))
    if not problems:
        return None
    at, what = min(problems)
    return what, at


def sha256_of_first(path: Path, size: int) -> str:
    """Returns the sha256 of a file's first `size` bytes in hex; of the whole file if it is shorter. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, CHUNK_BYTES))):
            digest.update(chunk)
            size -= len(chunk)
    return digest.hexdigest()
