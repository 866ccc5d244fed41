"""Creates and changes secrets and worker configurations: their contents come from a file or the standard input, so that
a secret's values are on no command line, which others can list."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.kinds import SECRETS, WORKER_CONFIGURATIONS, Kind
from keelman.cli.output.printing import print_one
from keelman.cli.specs.fields import said
from keelman.cli.specs.options import Given, GivenChange
from keelman.model.errors import InvalidArgument

_MISSING = {
    SECRETS: "the file with the secret's values, or - for the standard input",
    WORKER_CONFIGURATIONS: "the file of properties that the worker configuration is, or -",
}


def create_from_file(
    target: GatewayTarget, kind: Kind, name: str, file: Path | None, options: Given, *, form: str
) -> int:
    """Creates a secret from a file of properties or JSON, or a worker configuration from a file of properties."""
    if file is None:
        raise InvalidArgument(f"--config-file: missing: {_MISSING[kind]}")
    content: dict[str, Any] = {"values": values_of(file)} if kind is SECRETS else {"content": _read(file)}

    async def body(client: Gateway) -> None:
        print_one(kind, await client.create(kind, name, **content, **said(options)), form)

    return target.run(body)


def change_by_file(target: GatewayTarget, kind: Kind, name: str, file: Path, change: GivenChange, *, form: str) -> int:
    """Gives a secret other values, all of them, or a worker configuration another revision with its own description."""
    if kind is SECRETS and (change.labels or change.unlabel or change.description is not None):
        raise InvalidArgument(
            "--config-file: not together with other options of a secret: change those in a command of their own"
        )
    if change.labels or change.unlabel:
        raise InvalidArgument("--label, --unlabel: not together with --config-file: a revision has no labels")
    content: Any = values_of(file) if kind is SECRETS else _read(file)

    async def body(client: Gateway) -> None:
        resource: Any
        if kind is SECRETS:
            mask = FieldMask(paths=["values"])
            resource = (await client.call("Update", kind, name=name, values=content, update_mask=mask)).secret
            text = "updated"
        else:
            resource = await client.add_revision(name, content, change.description or "")
            text = f"has revision {resource.revisions[-1].revision}"
        if form != "text":
            print_one(kind, resource, form)
            return
        print(f"{kind.singular}/{name} {text}")

    return target.run(body)


def values_of(file: Path) -> dict[str, str]:
    """The values in a file: a JSON object of texts, or properties. Raises InvalidArgument that names no value."""
    import javaproperties  # noqa: PLC0415

    try:
        text = _read(file).decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"--config-file: {file}: not UTF-8") from None
    if not text.lstrip().startswith("{"):
        try:
            return dict(javaproperties.loads(text))
        except javaproperties.InvalidUEscapeError:
            raise InvalidArgument(f"--config-file: {file}: an escape in it is not \\u with four digits") from None
    try:
        tree = json.loads(text)
    except ValueError:
        raise InvalidArgument(f"--config-file: {file}: begins like JSON and is not valid JSON") from None
    if wrong := next((key for key, value in tree.items() if not isinstance(value, str | int | float)), ""):
        raise InvalidArgument(f"--config-file: {file}: {wrong}: expected a text, a number or a boolean")
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in tree.items()}


def _read(file: Path) -> bytes:
    """The content of a file, or of the standard input for `-`. Raises InvalidArgument."""
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"--config-file: {file}: {error.strerror}") from None


def check_no_wait(kind: Kind, seconds: float | None) -> None:
    """Raises InvalidArgument where there is nothing to wait for."""
    if seconds is not None:
        raise InvalidArgument(f"--wait: not for {kind.plural}: it is complete when the command returns")
