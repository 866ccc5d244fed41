"""Reads the key that seals secrets: from a file that the state service makes, or from a command that prints it.

Both have a line of base64 for each key: the first one seals, the others only open values that they sealed before.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import HIDDEN

log = get_logger()
KEY_BYTES = 32
COMMAND_SECONDS = 30.0
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """A command line, without a shell, that prints the key. The text of this object has no argument."""

    line: str = field(repr=False)

    @property
    def words(self) -> list[str]:
        """The program and its arguments. Raises InvalidArgument."""
        with contextlib.suppress(ValueError):
            if words := shlex.split(self.line):
                return words
        raise InvalidArgument.of("state.key_command", HIDDEN, "a program and its arguments, in quotes where needed")

    def __str__(self) -> str:
        """Returns the program alone: arguments may be confidential."""
        return self.words[0]


KeySource: TypeAlias = Path | KeyCommand


def setting_of(source: KeySource) -> str:
    """Returns the setting that names a source, for people."""
    return "state.key_file" if isinstance(source, Path) else "state.key_command"


def read_keys(source: KeySource) -> Sequence[bytes]:
    """Returns the keys of a source, at least one. Raises InvalidArgument for text that is no key or cannot be read,
    FileNotFoundError for no file, Unavailable (KEY_COMMAND_FAILED) for a command that does not print one."""
    if isinstance(source, Path):
        return _keys_in(_file_text(source), source, f"a readable file with {KEY_BYTES} bytes of base64 in each line")
    return _keys_in(_printed(source), source, f"a command that prints {KEY_BYTES} bytes of base64")


def made_key(file: Path) -> bytes:
    """Makes a key file that its owner alone may read, and returns its key; the existing file's if another was quicker.

    Raises InvalidArgument if it cannot be written.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _written([os.urandom(KEY_BYTES)], file) as temporary, contextlib.suppress(FileExistsError):
            os.link(temporary, file)
            log.info("key_file_made", file=str(file))
    except OSError as error:
        raise InvalidArgument.of(
            "state.key_file", str(file), f"a file that can be written ({error.strerror})"
        ) from None
    return read_keys(file)[0]


def replace_keys(file: Path, keys: Sequence[bytes]) -> None:
    """Replaces a file by a new one with these keys and the same owner. Raises OSError."""
    status = file.stat()
    with _written(keys, file) as temporary:
        if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(temporary, status.st_uid, status.st_gid)
        os.replace(temporary, file)


def new_key_file(file: Path) -> Path:
    """Returns the file of a new key until that replaces the old one."""
    return file.with_name(file.name + ".new")


@contextlib.contextmanager
def _written(keys: Sequence[bytes], file: Path) -> Iterator[str]:
    """Writes these keys to a temporary file beside another; removes it at the end of the block unless it was moved."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines(base64.b64encode(key) + b"\n" for key in keys)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _file_text(file: Path) -> bytes:
    try:
        text = file.read_bytes()
        open_to = stat.S_IMODE(file.stat().st_mode) & 0o077
    except FileNotFoundError:
        raise
    except OSError as error:
        legal = f"a readable file with {KEY_BYTES} bytes of base64, as the state service makes it ({error.strerror})"
        raise InvalidArgument.of("state.key_file", str(file), legal) from None
    if open_to:
        log.warning("key_file_open", file=str(file), message="others may read or write the key file: chmod 600")
    return text


def _printed(command: KeyCommand) -> bytes:
    words = command.words
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS, check=False
        )
    except OSError as error:
        raise InvalidArgument.of("state.key_command", words[0], f"a program ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise _failed(command, f"it has not ended after {COMMAND_SECONDS:g} s") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        reason = f"it ended with {done.returncode}" + (f": {last[0][:MAX_ERROR_CHARACTERS]}" if last else "")
        raise _failed(command, reason)
    return done.stdout


def _failed(command: KeyCommand, reason: str) -> Unavailable:
    return Unavailable(f"state.key_command: {str(command)!r} gives no key: {reason}", reason="KEY_COMMAND_FAILED")


def _keys_in(text: bytes, source: KeySource, legal: str) -> Sequence[bytes]:
    with contextlib.suppress(ValueError, binascii.Error):
        keys = [base64.b64decode(line, validate=True) for line in text.split()]
        if keys and all(len(key) == KEY_BYTES for key in keys):
            return tuple(keys)
    raise InvalidArgument.of(setting_of(source), str(source), legal)
