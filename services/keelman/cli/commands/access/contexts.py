"""`keelman context`: known gateways, how each is trusted, and the credentials for each."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from keelman.cli.client.contexts import NAME, Context, Contexts
from keelman.cli.client.target import checked_gateway
from keelman.cli.options import PlainName, TextForm, command_group
from keelman.cli.output.printing import print_document
from keelman.model.errors import AlreadyExists, InvalidArgument
from keelman.model.rules.names import checked_name
from keelman.rpc.server import is_loopback

app, context = command_group(), command_group()
app.add_typer(context, name="context", help="Keep gateways by name, with how to reach each.")
Token = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the token, or - for standard input.")
]


@context.command()
def create(
    name: PlainName,
    *,
    gateway: Annotated[str, typer.Option("--gateway", metavar="HOST:PORT", help="The gateway's gRPC.")],
    http: Annotated[str, typer.Option("--http", metavar="URL", help="Its HTTP API [port 7480 of that host].")] = "",
    ca: Annotated[
        Path | None, typer.Option("--ca", metavar="FILE", help="Certificates by which it is trusted, PEM; TLS.")
    ] = None,
    token_file: Token = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Certificate of the caller, PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The certificate's key, PEM.")] = None,
    mesh: Annotated[
        bool, typer.Option("--mesh", help="A sidecar or tunnel secures what leaves this host: no TLS.")
    ] = False,
    use_it: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
) -> int:
    """Keep a gateway under a name."""
    contexts = Contexts.read()
    if checked_name("NAME", name) in contexts.known:
        raise AlreadyExists(f"context {name!r} exists: delete it first with `keelman context delete {name}`")
    checked_gateway(gateway, "--gateway")
    if (certificate is None) != (key is None) or (certificate and not ca):
        raise InvalidArgument("--certificate: --certificate, --key and --ca go together")
    ca_path, own, key_path = (str(path.expanduser().absolute()) if path else "" for path in (ca, certificate, key))
    new_context = Context(gateway, http, ca_path, _token(token_file), own, key_path, mesh)
    _ = new_context.certificates, new_context.client
    if not (mesh or new_context.ca or is_loopback(gateway.rpartition(":")[0].strip("[]"))):
        raise InvalidArgument.of("--gateway", gateway, "a loopback address, or any with --ca, or with --mesh")
    contexts.write({**contexts.known, name: new_context}, name if use_it else contexts.current)
    print(f"context/{name} created" + ("" if use_it else f"; `keelman context use {name}` makes commands use it"))
    return 0


@context.command()
def use(name: PlainName) -> int:
    """Have commands use the gateway of a context; `none` for no context."""
    contexts = Contexts.read()
    if name != "none":
        contexts.named(name)
    contexts.write(contexts.known, "" if name == "none" else name)
    print("no context is used" if name == "none" else f"context/{name} is used from now on")
    return 0


@context.command("list")
def list_all() -> int:
    """Show all contexts; a star is at the one in use."""
    contexts = Contexts.read()
    in_use = os.environ.get(NAME) or contexts.current
    for name, entry in contexts.known.items():
        who = "by a token" if entry.token else "by a certificate" if entry.certificate else "without a caller's name"
        print(f"{'*' if name == in_use else ' '} {name}  {entry.gateway}  {who}")
    if not contexts.known:
        print("no contexts: see `keelman context create --help`", file=sys.stderr)
    return 0


@context.command()
def show(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Its name; the one in use when left out.")] = "",
    output: TextForm = "yaml",
) -> int:
    """Show a context; its token stays hidden."""
    contexts = Contexts.read()
    name = name or os.environ.get(NAME) or contexts.current
    if not name:
        raise InvalidArgument("NAME: missing: no context is in use")
    print_document({"name": name, **contexts.named(name).shown()}, "json" if output == "json" else "yaml")
    return 0


@context.command()
def delete(name: PlainName) -> int:
    """Forget a context, and its token."""
    contexts = Contexts.read()
    contexts.named(name)
    left = {key: value for key, value in contexts.known.items() if key != name}
    contexts.write(left, "" if contexts.current == name else contexts.current)
    print(f"context/{name} deleted")
    return 0


@context.command()
def token(name: PlainName, *, token_file: Token = None) -> int:
    """Give a context another token, from a file or standard input."""
    contexts = Contexts.read()
    changed = replace(contexts.named(name), token=_token(token_file or Path("-")))
    contexts.write({**contexts.known, name: changed}, contexts.current)
    print(f"context/{name} has another token")
    return 0


def _token(file: Path | None) -> str:
    """The token in a file; "" without one. Raises InvalidArgument that does not show it."""
    if file is None:
        return ""
    try:
        text = (sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        strerror = error.strerror if isinstance(error, OSError) else "not a text"
        raise InvalidArgument.of("--token-file", str(file), f"a readable file ({strerror})") from None
    if not text or not text.isascii() or any(letter.isspace() for letter in text):
        raise InvalidArgument.of("--token-file", str(file), "a file with one token and nothing else")
    return text
