"""`keelman describe`: one resource in full, and the things that belong to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from keelman.cli import kinds
from keelman.cli.columns import key_of, run_state
from keelman.cli.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.cli.output import as_yaml, plain, print_list
from keelman.model.errors import KeelmanError


async def print_description(gateway: Gateway, kind: Kind, resource: Any) -> None:
    """Prints the resource as YAML, then tables of its parts."""
    print(f"# {kind.singular} {key_of(kind, resource)}")
    print(as_yaml(_without_tabs(plain(resource))), end="")
    for part, rows in (await _parts(gateway, kind, resource)).items():
        if rows:
            print(f"\n# {part.plural}")
            print_list(part, rows, "table")
            if part is kinds.COPY_RUNS:
                print_messages(rows)


def print_messages(runs: Sequence[Any]) -> None:
    """What the newest copy run of each task says, for those that say something."""
    newest = {(r.connector, r.task, r.part): r for r in sorted(runs, key=lambda r: r.create_time.ToNanoseconds())}
    for run in newest.values():
        if run.message:
            print(f"{run.connector}, task {run.task}: {run_state(run)}: {' '.join(run.message.split())}")


def _without_tabs(value: Any) -> Any:
    """For people: YAML shows no text with tabs, as traces have, in lines."""
    if isinstance(value, dict):
        return {key: _without_tabs(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_tabs(inner) for inner in value]
    return value.expandtabs(4) if isinstance(value, str) else value


async def _parts(gateway: Gateway, kind: Kind, resource: Any) -> dict[Kind, list[Any]]:
    if kind is kinds.WORKER_CLUSTERS:
        of = resource.name
        found: dict[Kind, list[Any]] = {}
        for part in (kinds.WORKERS, kinds.CONNECTORS, kinds.COPY_RUNS):
            try:
                found[part] = list(await gateway.list(part, cluster=of))
            except KeelmanError as error:  # one in trouble is described all the more: by what can be known
                print(f"no {part.plural}: {error.message}", file=sys.stderr)
        return found
    if kind is kinds.CONNECTORS:
        runs = await gateway.list(kinds.COPY_RUNS, cluster=resource.worker_cluster, ended=True)
        return {kinds.COPY_RUNS: [r for r in runs if r.connector == resource.name]}
    if kind is kinds.BROKER_CLUSTERS:
        prefix = f"broker/{resource.name}/"
        workloads = [w for w in await gateway.list(kinds.WORKLOADS) if w.name.startswith(prefix)]
        users = [c for c in await gateway.list(kinds.WORKER_CLUSTERS) if c.spec.broker_cluster == resource.name]
        return {kinds.WORKLOADS: workloads, kinds.WORKER_CLUSTERS: users}
    if kind is kinds.NODES:
        return {kinds.WORKLOADS: [w for w in await gateway.list(kinds.WORKLOADS) if w.node == resource.name]}
    if kind is kinds.WORKERS:
        return {
            kinds.WORKLOADS: [w for w in await gateway.list(kinds.WORKLOADS) if w.name == f"worker/{resource.name}"]
        }
    return {}
