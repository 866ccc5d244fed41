"""Compares two files in pieces: a file as the beginning of another, or byte for byte with counts and checksum."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ByteDifference:
    """The first byte at which two files differ, and its line; the byte after the end if one file is shorter."""

    byte: int
    line: int


@dataclass(frozen=True, slots=True)
class FileComparison:
    """The result of a comparison: facts of OUTPUT, and its first difference from INPUT, None if they are equal byte for
    byte."""

    size: int
    lines: int
    sha256: str
    difference: ByteDifference | None


def is_beginning(part: Path, whole: Path) -> ByteDifference | None:
    """Returns None if `part` is the beginning of `whole` or all of it, else their difference. Raises OSError."""
    at, lines = 0, 0
    with part.open("rb") as left, whole.open("rb") as right:
        while piece := left.read(CHUNK_BYTES):
            other = right.read(len(piece))
            if piece != other:
                return _first(piece, other, at, lines)
            at += len(piece)
            lines += piece.count(b"\n")
    return None


def verdict(output: Path, input_path: Path) -> FileComparison:
    """Compares two files to their ends. Raises OSError."""
    digest, at, lines = hashlib.sha256(), 0, 0
    difference: ByteDifference | None = None
    with output.open("rb") as left, input_path.open("rb") as right:
        while True:
            piece, other = left.read(CHUNK_BYTES), right.read(CHUNK_BYTES)
            if not piece and (difference is not None or not other):
                break
            if difference is None and piece != other:
                difference = _first(piece, other, at, lines)
            digest.update(piece)
            at += len(piece)
            lines += piece.count(b"\n")
    return FileComparison(at, lines, digest.hexdigest(), difference)


def _first(piece: bytes, other: bytes, at: int, lines: int) -> ByteDifference:
    shorter = min(len(piece), len(other))
    place = next((n for n in range(shorter) if piece[n] != other[n]), shorter)
    return ByteDifference(at + place, lines + piece[:place].count(b"\n") + 1)
