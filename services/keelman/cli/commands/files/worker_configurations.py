"""What `create` and `update` do with worker configurations: their content comes from a file."""

from __future__ import annotations

from pathlib import Path

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.configuration import read_bytes
from keelman.cli.fields import Given, GivenChange, said
from keelman.cli.kinds import Kind
from keelman.cli.output.printing import print_one
from keelman.model.errors import InvalidArgument

_KIND = kinds.WORKER_CONFIGURATIONS


def create_configuration(target: Target, name: str, file: Path | None, given: Given, form: str) -> int:
    """Creates a worker configuration from a file of properties."""
    if file is None:
        raise InvalidArgument("--config-file: missing: the file of properties that the worker configuration is, or -")
    content = read_bytes(file)

    async def body(client: Gateway) -> None:
        print_one(_KIND, await client.create(_KIND, name, content=content, **said(given)), form)

    return target.run(body)


def add_revision(target: Target, name: str, file: Path, given: GivenChange, form: str) -> int:
    """Gives a worker configuration another revision, with a description of its own."""
    if given.labels or given.unlabel:
        raise InvalidArgument("--label, --unlabel: not together with --config-file: a revision has no labels")
    content = read_bytes(file)

    async def body(client: Gateway) -> None:
        found = await client.add_revision(name, content, given.description or "")
        if form != "text":
            print_one(_KIND, found, form)
            return
        print(f"{_KIND.singular}/{name} has revision {found.revisions[-1].revision}")

    return target.run(body)


def check_no_wait(kind: Kind, seconds: float | None) -> None:
    """Raises InvalidArgument where there is nothing to wait for."""
    if seconds is not None:
        raise InvalidArgument(f"--wait: not for {kind.plural}: one that is answered is there")
