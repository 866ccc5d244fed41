"""Carries out commands on dedicated connectors: each begins an operation, which --wait follows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.operations import follow
from keelman.cli.client.target import GatewayTarget
from keelman.cli.configuration import class_of, given_config
from keelman.cli.output.printing import print_one
from keelman.cli.specs.fields import apply
from keelman.cli.specs.options import Given, GivenChange
from keelman.runtime.conflicts import again

_KIND = kinds.DEDICATED_CONNECTORS


def create_dedicated(
    target: GatewayTarget,
    name: str,
    options: Given,
    *,
    broker_cluster: str,
    connector: str,
    file: Path | None,
    form: str,
    wait: float | None,
) -> int:
    """Creates one, on the only broker cluster where none is named, with one worker where no number is."""
    whole, _ = given_config(file, ())
    spec = DedicatedConnectorSpec(connector=connector, config=whole or {})
    apply(options, spec)
    class_of(spec.config)
    if spec.capacity.WhichOneof("workers") is None:
        spec.capacity.count = 1

    async def body(client: Gateway) -> None:
        if not options.bootstrap_servers:
            spec.broker_cluster = broker_cluster or await client.only_broker_cluster()
        answer = await client.call("Create", _KIND, name=name, spec=spec)
        connector = answer.dedicated_connector
        if wait is not None:
            await follow(client, answer.operation.name, seconds=wait)
            connector = await client.get(_KIND, name)
        else:
            print(f"{_KIND.singular}/{name} is being created: operation/{answer.operation.name}", file=sys.stderr)
        print_one(_KIND, connector, form)

    return target.run(body)


def update_dedicated(
    target: GatewayTarget, name: str, change: GivenChange, *, skip_health_check: bool, form: str, wait: float | None
) -> int:
    """Changes its configuration or what its workers are."""

    async def body(client: Gateway) -> None:
        before, answer = await _updated(client, name, change, skip_health_check=skip_health_check)
        connector = answer.dedicated_connector
        if answer.HasField("operation") and wait is not None:
            await follow(client, answer.operation.name, seconds=wait)
            connector = await client.get(_KIND, name)
        if form != "text":
            print_one(_KIND, connector, form)
        elif answer.HasField("operation"):
            print(f"{_KIND.singular}/{name} {_outcome('updated', 'is being updated', answer, wait)}")
        else:
            print(
                f"{_KIND.singular}/{name} {'has these values already' if connector.etag == before.etag else 'updated'}"
            )

    return target.run(body)


async def _updated(client: Gateway, name: str, change: GivenChange, *, skip_health_check: bool) -> tuple[Any, Any]:
    """The connector as it was changed, and the answer. It is read and changed once more where it became another one in
    between: each report of its state changes it, too."""

    async def work() -> tuple[Any, Any]:
        connector = await client.get(_KIND, name)
        spec = DedicatedConnectorSpec()
        spec.CopyFrom(connector.spec)
        paths = list(dict.fromkeys(apply(change, spec)))
        answer = await client.call(
            "Update", _KIND, name=name, etag=connector.etag, spec=spec, update_mask={"paths": paths},
            skip_health_check=skip_health_check,
        )  # fmt: skip
        return connector, answer

    return await again(work)


def act_dedicated(target: GatewayTarget, verb: str, name: str, *, wait: float | None, **fields: Any) -> int:
    """Pauses, resumes, restarts or deletes one."""
    done, doing = {
        "pause": ("paused", "is being paused"),
        "resume": ("runs", "is being resumed"),
        "restart": ("restarted", "is being restarted"),
        "delete": ("deleted", "is being deleted"),
    }[verb]

    async def body(client: Gateway) -> None:
        answer = await client.call(verb.capitalize(), _KIND, name=name, **fields)
        if wait is not None:
            await follow(client, answer.operation.name, seconds=wait)
        print(f"{_KIND.singular}/{name} {_outcome(done, doing, answer, wait)}")

    return target.run(body)


def _outcome(done: str, doing: str, answer: Any, wait: float | None) -> str:
    return done if wait is not None else f"{doing}: operation/{answer.operation.name}"
