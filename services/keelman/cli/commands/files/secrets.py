"""What `create` and `update` do with secrets: their values come from a file or the standard input, never from a command
line, which others can list."""

from __future__ import annotations

import json
from pathlib import Path

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.configuration import read_bytes
from keelman.cli.fields import Given, GivenChange, said
from keelman.cli.output.printing import print_one
from keelman.model.errors import InvalidArgument

_KIND = kinds.SECRETS


def create_secret(target: Target, name: str, file: Path | None, given: Given, form: str) -> int:
    """Creates a secret from a file of properties or JSON."""
    if file is None:
        raise InvalidArgument("--config-file: missing: the file with the secret's values, or - for the standard input")
    values = values_of(file)

    async def body(client: Gateway) -> None:
        print_one(_KIND, await client.create(_KIND, name, values=values, **said(given)), form)

    return target.run(body)


def change_secret(target: Target, name: str, file: Path, given: GivenChange, form: str) -> int:
    """Gives a secret other values, all of them."""
    if given.labels or given.unlabel or given.description is not None:
        raise InvalidArgument("--config-file: not together with what is said of a secret: change that by itself")
    values = values_of(file)

    async def body(client: Gateway) -> None:
        answer = await client.call("Update", _KIND, name=name, values=values, update_mask=FieldMask(paths=["values"]))
        if form != "text":
            print_one(_KIND, answer.secret, form)
            return
        print(f"{_KIND.singular}/{name} updated")

    return target.run(body)


def values_of(file: Path) -> dict[str, str]:
    """The values in a file: a JSON object of texts, or properties. Raises InvalidArgument that names no value."""
    import javaproperties  # noqa: PLC0415

    try:
        text = read_bytes(file).decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"--config-file: {file}: not UTF-8") from None
    if not text.lstrip().startswith("{"):
        try:
            return dict(javaproperties.loads(text))
        except javaproperties.InvalidUEscapeError:
            raise InvalidArgument(f"--config-file: {file}: an escape in it is no \\u and four digits") from None
    try:
        found = json.loads(text)
    except ValueError:
        raise InvalidArgument(f"--config-file: {file}: begins as JSON and is none") from None
    if wrong := next((key for key, value in found.items() if not isinstance(value, str | int | float)), ""):
        raise InvalidArgument(f"--config-file: {file}: {wrong}: expected a text, a number or a boolean")
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
