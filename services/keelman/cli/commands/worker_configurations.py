"""What `create` and `update` do with worker configurations: their content comes from a file."""

from __future__ import annotations

import sys
from pathlib import Path

from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.fields import Given, GivenChange, apply
from keelman.cli.kinds import Kind
from keelman.cli.output.printing import print_one
from keelman.model.errors import InvalidArgument

_KIND = kinds.WORKER_CONFIGURATIONS


def create_configuration(target: Target, name: str, file: Path | None, given: Given, form: str) -> int:
    """Creates a worker configuration from a file of properties."""
    if file is None:
        raise InvalidArgument("--config-file: missing: the file of properties that the worker configuration is, or -")
    said, content = WorkerConfiguration(), read_bytes(file)
    apply(given, said)

    async def body(client: Gateway) -> None:
        answer = await client.call(
            "Create", _KIND, name=name, content=content, description=said.description, labels=dict(said.labels)
        )
        print_one(_KIND, answer.worker_configuration, form)

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


def read_bytes(file: Path) -> bytes:
    """What is in a file, or with - in the standard input. Raises InvalidArgument."""
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"--config-file: {file}: {error.strerror}") from None


def check_no_wait(kind: Kind, seconds: float | None) -> None:
    """Raises InvalidArgument where there is nothing to wait for."""
    if seconds is not None:
        raise InvalidArgument(f"--wait: not for {kind.plural}: one that is answered is there")
