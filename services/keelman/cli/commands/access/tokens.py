"""`keelman token create`: a token for a caller of the gateway, and the lines by which its access file knows it."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from keelman.cli.options import command_group
from keelman.model.access.roles import TOKEN_BEGINS, TOKEN_BYTES, Role, token_digest
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name
from keelman.runtime.home import write_file

app, token = command_group(), command_group()
app.add_typer(token, name="token", help="Make tokens for callers of the gateway.")


@token.callback()
def group() -> None:
    """Keeps `create` a command of a group, though it is the only one."""


@token.command()
def create(
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The caller that uses it.")],
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help=f"One of {', '.join(Role)}.")],
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="WC", help="Worker cluster that the role is for; repeated for several [all]."
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="The access file to which the lines are added.")
    ] = None,
) -> int:
    """Make a token. It is printed once, and kept nowhere: the access file has only its SHA-256."""
    if role not in set(Role):
        raise InvalidArgument.of("--role", role, f"one of {', '.join(Role)}")
    for worker_cluster in cluster or ():
        checked_name("--cluster", worker_cluster)
    secret = TOKEN_BEGINS + secrets.token_urlsafe(TOKEN_BYTES)
    lines = f'[[token]]\nname = "{checked_caller(name)}"\nrole = "{role}"\nsha256 = "{token_digest(secret)}"\n'
    if cluster:
        lines += f"clusters = {json.dumps(cluster)}\n"
    if file is None:
        print(f"keelman: put this into the gateway's access file (gateway.access_file):\n\n{lines}", file=sys.stderr)
    else:
        _add(file, name, lines)
        print(f"keelman: {file} has its lines now; the token, which is shown only this once:", file=sys.stderr)
    print(secret)
    return 0


def checked_caller(name: str) -> str:
    """Returns the name; raises InvalidArgument for one that an access file may not have."""
    if not 1 <= len(name) <= 128 or not all(char.isascii() and (char.isalnum() or char in "_+=,.@-") for char in name):
        raise InvalidArgument.of("--name", name, "1 to 128 letters, digits and _+=,.@-")
    return name


def _add(file: Path, name: str, lines: str) -> None:
    """Adds lines to an access file, which is made where there is none. Raises InvalidArgument, also for a name that it
    has."""
    import tomllib  # noqa: PLC0415

    try:
        present = file.read_text(encoding="utf-8") if file.exists() else ""
        tables = tomllib.loads(present).get("token", [])
        if any(table.get("name") == name for table in tables):
            raise InvalidArgument.of("--name", name, f"a name that no token in {file} has")
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        gap = "\n" if present.strip() else ""
        write_file(file, f"{present}{gap}{lines}".encode(), mode=mode)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
        raise InvalidArgument.of("--file", str(file), f"an access file ({error})") from None
    except OSError as error:
        raise InvalidArgument.of("--file", str(file), f"a file that can be written ({error.strerror})") from None
