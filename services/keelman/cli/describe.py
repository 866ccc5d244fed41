"""`keelman describe`: one resource in full, and the things that belong to it."""

from __future__ import annotations

from typing import Any

import yaml

from keelman.cli import kinds
from keelman.cli.columns import key_of
from keelman.cli.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.cli.output import plain, print_list


async def print_description(gateway: Gateway, kind: Kind, resource: Any) -> None:
    """Prints the resource as YAML, then tables of its parts."""
    print(f"# {kind.singular} {key_of(kind, resource)}")
    print(yaml.safe_dump(plain(resource), sort_keys=False, allow_unicode=True, width=120), end="")
    for part, rows in (await _parts(gateway, kind, resource)).items():
        if rows:
            print(f"\n# {part.plural}")
            print_list(part, rows, "table")


async def _parts(gateway: Gateway, kind: Kind, resource: Any) -> dict[Kind, list[Any]]:
    if kind is kinds.WORKER_CLUSTERS:
        of = resource.name
        return {
            kinds.WORKERS: list(await gateway.list(kinds.WORKERS, cluster=of)),
            kinds.CONNECTORS: [c for c in await gateway.list(kinds.CONNECTORS, cluster=of) if c.worker_cluster == of],
            kinds.COPY_RUNS: list(await gateway.list(kinds.COPY_RUNS, cluster=of)),
        }
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
