"""Entry of the console script `keelman`: passes service names to the services' own main, other words to the commands.

Nothing heavy is imported before it is needed, so that `keelman --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from keelman.cli.exits import FAILED, INTERRUPTED, OK, USAGE, exit_code_of, print_error
from keelman.model.errors import KeelmanError
from keelman.runtime import grpc_forks

SERVICES = (
    "gateway",
    "state",
    "agent",
    "broker",
    "spark",
    "worker",
    "kafka_connect",
)  # as in runtime.main, without its imports
TRACE = "KEELMAN_TRACE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. Every error is one line on stderr, never a trace."""
    grpc_forks.keep_out()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in SERVICES:
        return _service(words)
    try:
        return _run(words)
    except KeelmanError as error:
        print_error(error.message)
        return exit_code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            return _reader_left()
        if os.environ.get(TRACE):
            raise
        print_error(f"internal error: {type(error).__name__}: {error}; set {TRACE}=1 to see the trace")
        return FAILED


def _service(words: list[str]) -> int:
    if words[:2] == ["spark", "pack"]:
        from keelman.spark.masters.pack import main as pack  # noqa: PLC0415

        return pack(words[2:])
    if words[0] == "worker":
        from keelman.worker.main import main as worker  # noqa: PLC0415

        return worker(words[1:])
    if words[0] == "state":
        from keelman.state.main import main as state  # noqa: PLC0415

        return state(words[1:])
    from keelman.runtime.main import service_main  # noqa: PLC0415

    return service_main(words[0], words[1:])


def _reader_left() -> int:
    """Handles a reader of our output that has left (`| head`): Python's flush at exit is discarded."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def _run(words: list[str]) -> int:
    import typer  # noqa: PLC0415

    from keelman.cli.app import app  # noqa: PLC0415

    command = typer.main.get_command(app)
    if words[:1] in ([], ["help"]):  # `keelman help create` is `keelman create --help`
        words = [*words[1:], "--help"]
    try:
        code = command.main(args=words, prog_name="keelman", standalone_mode=False)
    except typer.Abort:
        print_error("not confirmed: nothing was changed")
        return FAILED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "keelman"
        print_error(f"{_usage_text(error)} See `{where} --help`")
        return USAGE
    sys.stdout.flush()
    return code if isinstance(code, int) else OK


def _usage_text(error: Exception) -> str:
    text = str(error.format_message() if hasattr(error, "format_message") else error).strip()
    text = " ".join(text.split()).rstrip(".")
    return text if text.endswith("?") else text + "."
