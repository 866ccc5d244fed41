"""A whole installation on three hosts by the commands of docs/operations.md, and its copying and measuring parts."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from keelman.rpc.channels import channel
from keelman.runtime.processes.process_trees import marked_leader
from support.hosts.lines import Lines
from support.hosts.operator import Commands, setting, two_states
from support.oracle import Report, judge
from support.servers.postgresql import PostgresqlServer
from support.state.service import Clients

BROKERS, WORKERS, PARAM = "default", "demo", "canary-param"
SECRET, DATABASE = "canary-secret", "canary-database"
PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.file.param.token": PARAM,
}


@dataclass(slots=True)
class Figures:
    """The measurements, each beside its goal."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, measured: str, goal: str) -> None:
        """One row."""
        self.rows.append((what, measured, goal))

    def __str__(self) -> str:
        lines = ["| what | measured | goal |", "|---|---|---|", *("| " + " | ".join(row) + " |" for row in self.rows)]
        return "\n".join(lines)


class Copies(Lines):
    """Lines that a source copies to topics, and a sink from these to others, of which each is `copied` of one."""

    def __init__(self, commands: Commands, bootstrap: str, topics: Sequence[str], client: Mapping[str, str]) -> None:
        super().__init__(commands.system.folder, bootstrap, topics, client=client)
        self.copied = {f"copy-{topic}": topic for topic in topics}
        self.seen |= {copy: [] for copy in self.copied}

    @property
    def as_they_are(self) -> dict[str, str]:
        """The converters that leave values unchanged."""
        text = "org.apache.kafka.connect.storage.StringConverter"
        return {"key.converter": text, "value.converter": text}

    def make_copies(self) -> None:
        """Creates the topics that the sink writes."""
        admin = AdminClient(dict(self._client))
        config = {"min.insync.replicas": "2"}
        topics = admin.create_topics([NewTopic(t, 1, 3, config=config) for t in self.copied])
        for item in topics.values():
            item.result(300)

    async def all_pass(self, *, seconds: float = 300.0) -> float:
        """Returns when a line written now is seen in the copies, too; the seconds that it took."""
        return await self._until_seen({copy: self.written[topic] + 1 for copy, topic in self.copied.items()}, seconds)

    async def both_judged(self) -> tuple[Report, Report]:
        """The oracle's reports on the source's and the sink's copies."""
        await self._ended(self.copied)
        sent = dict(enumerate(self.written.values()))
        first, second = ({t: self.seen[t] for t in names} for names in (self.files, self.copied))
        return judge(sent, first), judge(sent, second)


@dataclass(slots=True)
class Plane:
    """The installation: its commands, its clients' settings for the brokers, and the admin's token."""

    commands: Commands
    token: str
    database: str
    bootstrap: str = ""

    @property
    def authority(self) -> str:
        """The file of the CA's certificate."""
        return str(self.commands.authority)

    @property
    def client(self) -> dict[str, str]:
        """The properties by which clients of librdkafka reach the brokers."""
        return {"security.protocol": "SSL", "ssl.ca.location": self.authority}

    @property
    def properties(self) -> dict[str, str]:
        """The same for Java's clients."""
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority}
        return {"bootstrap.servers": self.bootstrap, "security.protocol": "SSL", **trust}

    async def create(self, connector: str, config: Mapping[str, str]) -> None:
        """Creates a connector and waits until it runs."""
        await self.commands.wait_for("create", "connector", connector, "--cluster", WORKERS, *setting(config))

    async def workers_of(self, node: str) -> dict[str, int]:
        """The processes of the workers of a node, by the workers' names."""
        home = self.commands.home(node)
        names = [name for name, on in (await self.commands.system.workers(WORKERS)).items() if on == node]
        return {name: pid for name in names if (pid := marked_leader(home.workload(name))) is not None}


@contextlib.asynccontextmanager
async def installed(commands: Commands, server: PostgresqlServer) -> AsyncIterator[Plane]:
    """The installation.

    Two state services with certificates on one PostgreSQL, a gateway, agents that joined, a broker on each host, and a
    worker cluster over all of them.
    """
    nodes = tuple(commands.system.hosts)
    url = server.database().replace("keelman@", f"keelman:{DATABASE}@")
    plane = Plane(commands, await two_states(commands, url), url)
    for node in nodes:
        commands.join(node, "--workload-trust", "mesh")
    ca = Path(plane.authority).read_bytes()
    async with channel(commands.gateway, root_certificates=ca, token=plane.token) as link:
        commands.system.clients = commands.system.gateway = Clients(link)
        await commands.system.online(*nodes)
        await commands.wait_for("create", "broker-cluster", BROKERS, "--nodes", ",".join(nodes), "--tls", "server")
        count = str(len(nodes))
        await commands.wait_for("create", "worker-cluster", WORKERS, "--count", count, "--start", *setting(PROVIDER))
        (values := commands.system.folder / "db.properties").write_text(f"password={SECRET}\n")
        commands.run("create", "secret", "shop/db", "--config-file", str(values))
        values.unlink()
        plane.bootstrap = ",".join(f"{host.address}:9092" for host in commands.system.hosts.values())
        yield plane
