"""Decides a command's exit code, which is stable, and writes the line on stderr with the reason of a failure."""

from __future__ import annotations

import re
import sys

from keelman.model import errors

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

MEANINGS = (
    (OK, "done"),
    (FAILED, "failed"),
    (USAGE, "wrong usage or a value that is not legal"),
    (NOT_FOUND, "no such thing"),
    (CONFLICT, "not possible in the present state, or the name is taken"),
    (UNREACHABLE, "the gateway cannot be reached, or something behind it; a port is taken"),
    (INTERRUPTED, "interrupted"),
)

_CODES: tuple[tuple[type[errors.KeelmanError], int], ...] = (
    (errors.InvalidArgument, USAGE),
    (errors.NotFound, NOT_FOUND),
    (errors.AlreadyExists, CONFLICT),
    (errors.FailedPrecondition, CONFLICT),
    (errors.Conflict, CONFLICT),
    (errors.Unavailable, UNREACHABLE),
)

# The form in which Connect lists its plugins, in its message about an unknown plugin.
_PLUGIN = re.compile(r"PluginDesc\{klass=class ([^,}]+),[^}]*\}")


class StartFailed(errors.FailedPrecondition):
    """A process in the background could not start; `exit_code` is the code that it would have in the foreground."""

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NotReached(errors.FailedPrecondition):
    """The state that `--wait` waits for cannot be reached by waiting: exit code 1."""

    reason = "NOT_REACHED"


def exit_code_of(error: errors.KeelmanError) -> int:
    """Returns the exit code of an error, by its class."""
    if isinstance(error, StartFailed):
        return error.exit_code
    if isinstance(error, NotReached):
        return FAILED
    return next((code for cls, code in _CODES if isinstance(error, cls)), FAILED)


def plain_plugins(message: str) -> str:
    """Returns Connect's message with each plugin shortened to its class."""
    return _PLUGIN.sub(r"\1", message)


def in_one_line(message: str) -> str:
    """Returns a message with its lines joined, and each plugin shortened to its class."""
    text = "; ".join(line.strip() for line in plain_plugins(message).splitlines() if line.strip())
    return text.replace(":; ", ": ").replace(".; ", "; ")


def print_error(message: str) -> None:
    """Writes one error line."""
    print("keelman: " + in_one_line(message), file=sys.stderr)
