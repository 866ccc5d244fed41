"""`keelman status`: what runs on this machine, from the file of the system and from its state service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from keelman.cli import kinds
from keelman.cli.client.gateway import connect
from keelman.cli.client.system import System, SystemService, running_system
from keelman.cli.client.target import home_of
from keelman.cli.exits import FAILED, OK
from keelman.cli.machine.leftovers import living
from keelman.cli.options import Form, HomeFolder, command_group
from keelman.cli.output.printing import checked_format, print_document
from keelman.cli.output.words import quantity, size
from keelman.model.errors import KeelmanError
from keelman.rpc.enums import state_word
from keelman.rpc.health import is_serving
from keelman.runtime.home import Home

# States before its node has reported it, and before it answers for the first time.
BEGINNING = ("UNSPECIFIED", "PENDING", "PREPARING", "STARTING")
app = command_group()


@app.command()
def status(home: HomeFolder = None, output: Form = "table") -> int:
    """Show what runs on this machine: services, workloads, clusters. Exit code 1 when not all of it is well."""
    return asyncio.run(_show(home_of(home), checked_format(output)))


async def _show(home: Home, form: str) -> int:
    """Prints the state of the home's system; returns FAILED when it is not up, or something in it or a
    connector is not well."""
    system = running_system(home)
    if system is None:
        return _absent(home, form)
    services = [await _service(s) for s in system.services]
    workloads, clusters, problem = await _resources(system)
    whole = not problem and all(s["serving"] for s in services)
    state = state_of(workloads, whole=whole) if system.ready else "STARTING"
    document = {
        "state": state,
        "home": system.home,
        "node": system.node,
        "gateway": system.gateway,
        "http": system.http,
        "pid": system.up.pid,
        "problem": problem,
        "services": services,
        "workloads": workloads,
        "clusters": clusters,
    }
    if form in ("json", "yaml"):
        print_document(document, form)
    else:
        _print_tables(document)
    well = state == "RUNNING" and not any(c.get("problem_connectors") for c in clusters)
    return OK if well else FAILED


def state_of(workloads: Sequence[Mapping[str, Any]], *, whole: bool) -> str:
    """RUNNING, STARTING or DEGRADED, by the state and reason of each workload; `whole` when all services answer.

    A process that starts without a reason is new, or was told to start; one that failed or fell silent before has one
    until it is healthy.
    """
    unwell = [w for w in workloads if w["state"] not in ("RUNNING", "STOPPED")]
    if not whole or any(w["state"] not in BEGINNING or w["reason"] for w in unwell):
        return "DEGRADED"
    return "STARTING" if unwell else "RUNNING"


def _absent(home: Home, form: str) -> int:
    left = living(home) if home.workloads.exists() else []
    names = [r.name for r in left]
    if form in ("json", "yaml"):
        print_document({"state": "ABSENT", "home": str(home.root), "left_running": names}, form)
    else:
        print(f"keelman is not running in {home.root}: start it with `keelman up`")
        if names:
            running = f"still running from a `keelman up` that was killed: {', '.join(names)}"
            print(f"{running}; `keelman up` adopts them, `keelman down` stops them")
    return FAILED


async def _service(service: SystemService) -> dict[str, Any]:
    alive = service.process.alive
    return {
        "name": service.name,
        "serving": alive and await is_serving(service.address),
        "address": service.address,
        "pid": service.process.pid,
        "memory_bytes": _memory(service.process.pid) if alive else 0,
        "log": service.log,
    }


async def _resources(system: System) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    try:
        async with connect(system.state) as gateway:  # has all of this, and needs no credentials
            workloads = [
                {
                    "name": w.name,
                    "state": state_word(w.status),
                    "pid": w.status.pid,
                    "memory_bytes": int(w.status.memory_bytes),
                    "restarts": w.status.restarts,
                    "reason": w.status.reason,
                    "message": w.status.message,
                }
                for w in await gateway.list(kinds.WORKLOADS)
            ]
            workers = await gateway.list(kinds.WORKERS)
            clusters = [
                {
                    "kind": kind.singular,
                    "name": c.name,
                    "state": state_word(c.status),
                    "where": _where(c.status),
                    "message": c.status.message,
                    **(copying_of(c, workers) if kind is kinds.WORKER_CLUSTERS else {}),
                }
                for kind in (kinds.BROKER_CLUSTERS, kinds.SPARK_CLUSTERS, kinds.WORKER_CLUSTERS)
                for c in await gateway.list(kind)
            ]
    except KeelmanError as error:
        return [], [], f"the state service does not answer: {error.message}"
    return workloads, clusters, ""


def copying_of(cluster: Any, workers: Sequence[Any]) -> dict[str, Any]:
    """The connectors and tasks of a worker cluster's workers, the connectors with problems, and the policy for
    connectors."""
    members = [worker.membership for worker in workers if worker.worker_cluster == cluster.name]
    return {
        "connectors": sum(member.connectors for member in members),
        "tasks": sum(member.tasks for member in members),
        "problem_connectors": cluster.status.problem_connectors,
        "verdict": cluster.status.verdict,
        "connector_policy": cluster.status.connector_policy,
    }


def _where(status: Any) -> str:
    """Where clients reach a cluster: its brokers, or its workers' REST."""
    if hasattr(status, "drivers"):
        return ",".join(driver.address for driver in status.drivers)
    return str(status.bootstrap_servers if hasattr(status, "bootstrap_servers") else ",".join(status.rest_urls))


def _memory(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _print_tables(document: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    print(f"{document['state']}  home {document['home']}  gateway {document['gateway']}  {document['http']}")
    if document["problem"]:
        print(document["problem"])
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in ("PROCESS", "STATE", "PID", "MEMORY", "WHERE"):
        table.add_column(title, justify="right" if title in ("PID", "MEMORY") else "left")
    table.add_row("up", "RUNNING", str(document["pid"]), size(_memory(document["pid"])), "")
    for s in document["services"]:
        state = "RUNNING" if s["serving"] else "NOT SERVING"
        table.add_row(s["name"], state, str(s["pid"]), size(s["memory_bytes"]), s["address"])
    for w in document["workloads"]:
        table.add_row(w["name"], w["state"], str(w["pid"] or "-"), size(w["memory_bytes"]), w["message"])
    Console(highlight=False, markup=False).print(table)
    for c in document["clusters"]:
        where = f" at {c['where']}" if c["where"] else ""
        print(f"{c['kind']} {c['name']}: {c['state']}{where}{': ' + c['message'] if c['message'] else ''}")
        if c.get("connectors") or c.get("verdict"):
            counts = f"{quantity(c['connectors'], 'connector')}, {quantity(c['tasks'], 'task')}"
            print(f"  {counts}: {c['verdict'] or 'all well'}")
        if c.get("connector_policy"):
            print(f"  connector policy: {c['connector_policy']}")
