"""Frees the disk space of a file's beginning while processes continue to append to it."""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from pathlib import Path
from typing import Any

KEEP_SIZE, PUNCH_HOLE = 1, 2  # linux/falloc.h


def punch(descriptor: int, end: int) -> None:
    """Turns the file's first `end` bytes into a hole: they read as zeros and take no space; the file's size stays.

    The kernel does it between writes, so no write is lost. Raises OSError where the file system cannot.
    """
    if _fallocate()(descriptor, KEEP_SIZE | PUNCH_HOLE, ctypes.c_int64(0), ctypes.c_int64(end)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def can_punch(folder: Path) -> bool:
    """Returns whether files in this folder can have holes; tried once for each file system. Raises OSError."""
    return _tried(folder.stat().st_dev, folder)


@functools.cache
def _fallocate() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if function is None:
        return _absent
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function


def _absent(*_: object) -> int:
    raise OSError(f"{os.name} has no fallocate")


_known: dict[int, bool] = {}


def _tried(device: int, folder: Path) -> bool:
    if device not in _known:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"ab")
            file.flush()
            try:
                punch(file.fileno(), 1)
            except OSError:
                _known[device] = False
            else:
                _known[device] = os.pread(file.fileno(), 2, 0) == b"\0b"
    return _known[device]
