"""The whole table of docs/operations.md in one scene: an installation on three hosts by the documented commands.

It copies while a worker is killed, a host's cable pulled, the brokers restarted and the leading state service killed.
Each figure is printed beside its goal. The test asserts that no record is lost or doubled, no secret leaks, and
everything works again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from keelman.model.access.join_token import parsed_token
from keelman.state.database.key_source import read_keys
from keelman.state.database.sealing import Sealer
from support.eventually import eventually
from support.hosts.networks import RUNNING
from support.hosts.operator import Commands
from support.hosts.plane import DATABASE, PARAM, SECRET, Copies, Figures, Plane, installed
from support.hosts.planted import Search, in_files, in_processes, in_tables, in_topics
from support.hosts.pulled import longest_stands, pulled, spread
from support.servers.postgresql import PostgresqlServer, running_postgresql

pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.usefixtures("postgresql")]
NODES = ("n1", "n2", "n3")
TOPICS = ("lines-0", "lines-1", "lines-2")
LOAD, LOAD_PER_SECOND, LOAD_LINES = "load", 20_000, 4_000_000
NEEDED = {
    "the parameter of a provider": ("n?/agent/assignments.json", "n?/workloads/worker-demo-*/worker.properties"),
    "the database's password": ("state.toml", "state-2.toml"),
    "the admin's token": ("contexts.json",),
    "the nodes' keys": ("n?/trust/node/key.pem",),
    "the key that seals": ("home*/state/secrets.key",),
}
KINDS = (
    "nodes", "broker-clusters", "worker-clusters", "workers", "connectors", "copy-runs", "workloads", "topics",
    "definitions", "secrets", "operations", "plans",
)  # fmt: skip


async def test_the_whole_table(commands: Commands) -> None:
    figures = Figures()
    with running_postgresql({}, host=commands.system.address) as server:
        begun = time.monotonic()
        async with installed(commands, server) as plane:
            figures.add("three hosts installed, from no process to workers that run", seconds_since(begun), "")
            lines = Copies(commands, plane.bootstrap, TOPICS, plane.client)
            lines.make_copies()
            with lines.flowing():
                await copying(plane, lines)
                await a_worker_is_killed(plane, lines, figures)
                await a_cable_is_pulled(plane, lines, figures)
                await the_brokers_are_restarted(plane, lines, figures)
                await the_leader_is_killed(plane, lines, figures)
                reports = await lines.both_judged()
            for what, report in zip(("source", "sink"), reports, strict=True):
                summary = f"{report['lost']} lost, {report['duplicated']} doubled of {report.sent:,}"
                figures.add(f"records of the {what}", summary, "0 lost, 0 doubled")
            search = await searched(plane, server)
            figures.add(
                "secrets found where nothing needs them", f"{len(search.strays)} in {search.looked:,} places", "0"
            )
    load = ", ".join(f"{average:.0f}" for average in os.getloadavg())
    print(f"\nload of the machine: {load}\n{figures}")
    assert all(report.clean for report in reports), reports
    assert search.strays == set()
    assert {name for name, _ in search.found} >= NEEDED.keys(), "the present values are found"


def seconds_since(begun: float) -> str:
    return f"{time.monotonic() - begun:.1f} s"


async def copying(plane: Plane, lines: Copies) -> None:
    """Creates connectors that copy each file to a topic, and each of these to another."""
    for topic in TOPICS:
        await plane.create(topic, lines.config(topic))
    sink = {"connector.class": "keelman.connectors.KafkaSinkConnector", "topics": ",".join(TOPICS), "tasks.max": "3"}
    password = {"target.note.password": "${secret:shop/db:password}"}
    await plane.create("copies", {**sink, **password, "topic": "copy-${topic}", **lines.as_they_are})
    await lines.all_pass(seconds=300)
    await spread(plane.commands.system, TOPICS, over=3)
    await lines.all_pass()


async def a_worker_is_killed(plane: Plane, lines: Copies, figures: Figures) -> None:
    """A worker of a live node is killed: its agent restarts it. Until then its slots copy without it."""
    system, on = plane.commands.system, plane.commands.system.hosts["n2"]
    owners = await system.owners("demo", TOPICS)
    own = tuple(topic for topic, worker in owners.items() if worker.startswith(f"{on.address}:"))
    ((name, leader),) = (await plane.workers_of("n2")).items()
    before = (await system.of.workloads())[name].status.restarts
    async with watched(lines, (*own, *lines.copied)) as longest:
        os.kill(leader, signal.SIGKILL)

        async def back() -> bool:
            status = (await system.of.workloads())[name].status
            ready = (await system.of.worker_cluster("demo")).status.ready_workers
            return status.restarts > before and status.state == RUNNING and ready == len(NODES)

        await eventually(back, what="it is back")
        await spread(system, TOPICS, over=3)
        await lines.all_pass()
    figures.add("a killed worker on a live node: longest stand-still", f"{max(longest[t] for t in own):.1f} s", "2 s")
    figures.add("the same, by way of the sink", f"{max(longest[t] for t in lines.copied):.1f} s", "")


@contextlib.asynccontextmanager
async def watched(lines: Copies, topics: Sequence[str]) -> AsyncIterator[dict[str, float]]:
    """The longest time without a record of a topic, by topic; known when the block is left."""
    over, longest = asyncio.Event(), dict[str, float]()
    watching = asyncio.create_task(longest_stands(lines, topics, over))
    try:
        yield longest
    finally:
        over.set()
        longest |= await watching


async def a_cable_is_pulled(plane: Plane, lines: Copies, figures: Figures) -> None:
    """Pulls the cable of a host with a broker and a worker; others take over until it is back."""
    system = plane.commands.system
    await spread(system, TOPICS, over=3)
    took = await pulled(system, lines, TOPICS, system.hosts["n3"])
    copies = await lines.all_pass()
    figures.add("a host's cable pulled: its tasks copy elsewhere", f"{took.own:.1f} s", "15 s")
    figures.add("the same, all tasks copy", f"{took.all:.1f} s", "15 s")
    figures.add("the same, its movable worker runs elsewhere", f"{took.worker:.1f} s", "")
    figures.add("the same, the sink's copies are complete again after these", f"{copies:.1f} s", "")
    system.hosts["n3"].plug_in()
    await system.online(*NODES)
    await system.in_state("default", "RUNNING", seconds=300)
    await lines.all_pass()


async def the_brokers_are_restarted(plane: Plane, lines: Copies, figures: Figures) -> None:
    """Restarts one after the other, by a change of a property, under load."""
    commands = plane.commands
    file = commands.system.folder / "load.txt"
    with file.open("w") as stream:
        stream.writelines(f"{number:060}\n" for number in range(LOAD_LINES))
    limit = {"keelman.limit.records.per.second": str(LOAD_PER_SECOND)}
    commands.run("create", "topic", LOAD, "--partitions", "3")
    await plane.create(LOAD, {**lines.config(TOPICS[0]), "file": str(file), "topic": LOAD, **limit})
    begun = time.monotonic()
    async with watched(lines, (*TOPICS, *lines.copied)) as longest:
        await commands.wait_for("update", "broker-cluster", "default", "--set", "log.retention.hours=5")
        await commands.system.in_state("default", "RUNNING")
        took = time.monotonic() - begun
        await lines.all_pass()
    source, sink = (max(longest[topic] for topic in names) for names in (TOPICS, lines.copied))
    await commands.wait_for("delete", "connector", LOAD, "--cluster", "demo")
    what = f"three brokers restarted under {LOAD_PER_SECOND:,} records a second in {took:.0f} s: longest stand-still"
    figures.add(what, f"{source:.1f} s", "10 s")
    figures.add("the same, by way of the sink", f"{sink:.1f} s", "")


async def the_leader_is_killed(plane: Plane, lines: Copies, figures: Figures) -> None:
    """The leading state service is killed; its gateway and agents then use the other one."""
    commands = plane.commands
    leads = next(node for node in NODES[:2] if led(commands, node) == max(led(commands, item) for item in NODES[:2]))
    other = next(node for node in NODES[:2] if node != leads)
    before = led(commands, leads)
    async with watched(lines, (*TOPICS, *lines.copied)) as longest:
        commands.kill(leads)
        begun = time.monotonic()

        def another() -> bool:
            return led(commands, other) > before

        await eventually(another, what="the other leads")
        figures.add("the leading state service killed: another leads", seconds_since(begun), "")
        await commands.wait_for("create", "topic", "more", "--partitions", "3")
        figures.add("the same, a topic asked for then is there", seconds_since(begun), "")
        begun = time.monotonic()
        for node in NODES:
            assert await asyncio.to_thread(commands.in_state, node, "ONLINE")
        figures.add("the same, three `keelman get nodes` meanwhile", seconds_since(begun), "")
        name = "state.toml" if leads == NODES[0] else "state-2.toml"
        commands.start("state", "run", "--file", str(commands.system.folder / name), host=leads)
        await lines.all_pass()
    figures.add("the same, longest stand-still of copying", f"{max(longest.values()):.1f} s", "")


def led(commands: Commands, node: str) -> int:
    """The last epoch in which the state service of a host began to lead; 0 if it never did."""
    matches = re.findall(r"\bleads +epoch=(\d+)", (commands.system.folder / f"{node}.log").read_text())
    return max(map(int, matches), default=0)


async def searched(plane: Plane, server: PostgresqlServer) -> Search:
    """Searches for all secrets in every place that can be read."""
    commands, folder = plane.commands, plane.commands.system.folder
    sealing = folder / "home" / "state" / "secrets.key"
    keys = [commands.home(node).member("node") / "key.pem" for node in NODES]
    secrets = {
        "a secret": [SECRET],
        "the parameter of a provider": [PARAM],
        "the database's password": [DATABASE],
        "the admin's token": [plane.token],
        "tokens of joining": [parsed_token(token).secret for token in commands.tokens],
        "the CA's key": lines_of(key_of_authority(plane.database, sealing)),
        "the nodes' keys": [line for key in keys for line in lines_of(key.read_text())],
        "the key that seals": sealing.read_text().split(),
    }
    assert all(secrets.values())
    search = Search(secrets, NEEDED)
    for kind in KINDS:
        words = ("--cluster", "demo") if kind in ("workers", "connectors") else ()
        search.look(f"keelman get {kind}", commands.run("get", kind, *words, "-o", "yaml").encode())
    for words in (("export",), ("describe", "connector", "copies", "--cluster", "demo"), ("describe", "wc", "demo")):
        search.look(f"keelman {' '.join(words)}", commands.run(*words).encode())
    for place, data in await in_topics(plane.properties, (LOAD, *TOPICS, *(f"copy-{topic}" for topic in TOPICS))):
        search.look(place, data)
    for places in (in_tables(plane.database), in_processes(folder), in_files(server.folder), in_files(folder)):
        for place, data in places:
            search.look(place, data)
    return search


def lines_of(pem: str) -> list[str]:
    """The lines that are particular to a key: the first line of all keys of a kind is the same."""
    return [line for line in pem.splitlines() if line and not line.startswith("-")][1:]


def key_of_authority(database: str, sealing: Path) -> str:
    engine = sa.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.connect() as connection:
            (sealed,) = connection.execute(sa.text("SELECT secret FROM authority")).one()
    finally:
        engine.dispose()
    return str(Sealer(read_keys(sealing)[0], sealing).open({"secret": sealed}, "authority")["secret"])
