"""`keelman token`: tokens for callers of the gateway, and the lines by which its access file knows them."""

from __future__ import annotations

import json
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.cli.moments import checked_end
from keelman.cli.options import command_group
from keelman.cli.output.widths import aligned
from keelman.model.access.roles import TOKEN_BEGINS, TOKEN_BYTES, Role, token_digest
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name
from keelman.runtime.home import rewrite_file
from keelman.runtime.tls.certificates import shown_time

app, token = command_group(), command_group()
app.add_typer(token, name="token", help="Make tokens for callers of the gateway.")


@token.command()
def create(
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The caller that uses it.")],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help=f"One of {', '.join(Role)}, or one that the file defines.")
    ],
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="WC", help="Worker cluster that the role is for; repeated for several [all]."
        ),
    ] = None,
    expires: Annotated[
        str,
        typer.Option("--expires", metavar="WHEN", help="Its end: after a time such as 90d or 12h, or a date [none]."),
    ] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="The access file to which the lines are added.")
    ] = None,
) -> int:
    """Make a token. It is printed once, and kept nowhere: the access file has only its SHA-256."""
    legal = [*Role, *_own_roles(file)]
    if role not in legal:
        raise InvalidArgument.of("--role", role, f"one of {', '.join(legal)}")
    for worker_cluster in cluster or ():
        checked_name("--cluster", worker_cluster)
    secret = TOKEN_BEGINS + secrets.token_urlsafe(TOKEN_BYTES)
    lines = f'[[token]]\nname = "{checked_caller(name)}"\nrole = "{role}"\nsha256 = "{token_digest(secret)}"\n'
    if cluster:
        lines += f"clusters = {json.dumps(cluster)}\n"
    if expires:
        lines += f"expires = {checked_end(expires, datetime.now(UTC)):%Y-%m-%dT%H:%M:%SZ}\n"
    if file is None:
        print(f"keelman: put this into the gateway's access file (gateway.access_file):\n\n{lines}", file=sys.stderr)
    else:
        _add(file, name, lines)
        print(f"keelman: {file} has its lines now; the token, which is shown only this once:", file=sys.stderr)
    print(secret)
    return 0


def checked_caller(name: str) -> str:
    """Returns the name. Raises InvalidArgument if an access file may not have it."""
    if not 1 <= len(name) <= 128 or not all(char.isascii() and (char.isalnum() or char in "_+=,.@-") for char in name):
        raise InvalidArgument.of("--name", name, "1 to 128 letters, digits and _+=,.@-")
    return name


@token.command("list")
def list_all(
    *, file: Annotated[Path, typer.Option("--file", metavar="FILE", help="The gateway's access file.")]
) -> int:
    """Show the callers of an access file that have a token or a certificate, with their roles, ends and last uses."""
    from keelman.gateway.access.access_file import read_access_file  # noqa: PLC0415  (it is the gateway's)
    from keelman.gateway.access.last_uses import TOKEN, USER, read_last_uses  # noqa: PLC0415

    content = read_access_file("--file", file)
    used = read_last_uses(file)
    rows = [("NAME", "BY", "ROLE", "CLUSTERS", "EXPIRES", "LAST USE")]
    for kind, by, callers in ((TOKEN, "token", content.tokens), (USER, "certificate", content.users)):
        for caller in sorted(callers.values(), key=lambda caller: caller.name):
            clusters = "(all)" if caller.clusters is None else ",".join(sorted(caller.clusters))
            end = caller.expire_time
            shown = "-" if end is None else shown_time(end) + (" (expired)" if end <= datetime.now(UTC) else "")
            last = used.get(f"{kind}/{caller.name}")
            rows.append((caller.name, by, str(caller.role), clusters, shown, "-" if last is None else shown_time(last)))
    print(aligned(rows))
    return 0


def _own_roles(file: Path | None) -> list[str]:
    """Returns the names of the roles that an access file defines. Raises InvalidArgument for an illegal file."""
    from keelman.gateway.access.own_roles import read_own_roles  # noqa: PLC0415  (it is the gateway's)

    return [] if file is None or not file.exists() else [*read_own_roles("--file", _document(file))]


def _document(file: Path) -> dict[str, Any]:
    """Returns the content of an access file. Raises InvalidArgument."""
    import tomllib  # noqa: PLC0415

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument.of("--file", str(file), f"an access file ({error})") from None
    except OSError as error:
        raise InvalidArgument.of("--file", str(file), f"a file that can be read ({error.strerror})") from None


def _add(file: Path, name: str, lines: str) -> None:
    """Adds lines to an access file, which is made where there is none. Raises InvalidArgument, also for a name that it
    has."""
    import tomllib  # noqa: PLC0415

    try:
        present = file.read_text(encoding="utf-8") if file.exists() else ""
        tables = tomllib.loads(present).get("token", [])
        if any(table.get("name") == name for table in tables):
            raise InvalidArgument.of("--name", name, f"a name that no token in {file} has")
        gap = "\n" if present.strip() else ""
        rewrite_file(file, f"{present}{gap}{lines}".encode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
        raise InvalidArgument.of("--file", str(file), f"an access file ({error})") from None
    except OSError as error:
        raise InvalidArgument.of("--file", str(file), f"a file that can be written ({error.strerror})") from None
