"""Runs a real managed broker for tests: the same process that an agent starts, on free ports."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keelman.kafka.probe import ask_broker
from keelman.runtime.processes.ports import free_ports
from support.brokers.kafka_proxy import KafkaProxy
from support.places import with_tests
from support.program import Program

START_SECONDS = 300.0  # on an overloaded machine a start takes a minute
INTERNAL_PARTITIONS = 3
"""The partitions of the topics of groups and of transactions each, for short-lived brokers."""
# Java's quick compiler alone: half the CPU for a start (2.1 s instead of 4.2) and for a test's few thousand requests.
# Each partition of an internal topic costs as well where the first group and the first transaction make them: 2.2 CPU s
# with 12, 1.2 with 3.
SHORT_LIVED = (
    "--jvm-options=-XX:TieredStopAtLevel=1",
    "--properties="
    + ",".join(f"{topic}.num.partitions={INTERNAL_PARTITIONS}" for topic in ("offsets.topic", "transaction.state.log")),
)


@dataclass
class BrokerProcess(Program):
    """One broker in `home`; started and stopped as often as a test likes, its data kept."""

    home: Path
    port: int = 0
    controller_port: int = 0
    flags: tuple[str, ...] = ()
    """If a flag is repeated, the last one counts: `--properties` replace those of `SHORT_LIVED`."""
    lasting: bool = False
    """Runs as it is shipped, with both of Java's compilers, which pays after a minute under load."""
    module: str = "keelman.broker"
    """The module to run; `support.brokers.broker_3_9` is a broker of Kafka 3.9."""

    env: Mapping[str, str] = field(default_factory=dict)
    """More variables of its environment."""

    def __post_init__(self) -> None:
        super().__init__("the broker", self.home / "output.log")
        if not self.port:
            self.port, self.controller_port = free_ports(2)

    @property
    def bootstrap(self) -> str:
        """The bootstrap address."""
        return f"127.0.0.1:{self.port}"

    async def spawn(self) -> None:
        """Starts the process and does not wait for it."""
        command = [sys.executable, "-m", self.module, "run", "--home", str(self.home)]
        command += ["--port", str(self.port), "--controller-port", str(self.controller_port)]
        command += [f"--start-seconds={START_SECONDS:g}", *(() if self.lasting else SHORT_LIVED), *self.flags]
        plain = {k: v for k, v in with_tests().items() if not k.startswith("KEELMAN_BROKER_")}
        await self.run(command, env=plain | dict(self.env))

    async def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its output when it does not."""
        await self.spawn()
        await self.answers(lambda: answers(self.port), START_SECONDS)


async def answers(port: int) -> bool:
    """Whether a broker on loopback answers and knows of brokers."""
    answer = await ask_broker("127.0.0.1", port)
    return answer is not None and bool(answer.brokers)


@contextlib.asynccontextmanager
async def running_broker(home: Path, *flags: str, lasting: bool = False) -> AsyncIterator[str]:
    """A broker with its data under `home`; yields its bootstrap servers. For a session-wide fixture:

    ```python
    @pytest.fixture(scope="session")
    async def bootstrap(tmp_path_factory):
        async with running_broker(tmp_path_factory.mktemp("broker")) as servers:
            yield servers
    ```
    """
    async with started_broker(home, *flags, lasting=lasting) as broker:
        yield broker.bootstrap


@contextlib.asynccontextmanager
async def started_broker(home: Path, *flags: str, lasting: bool = False) -> AsyncIterator[BrokerProcess]:
    """The same; yields the broker, to be ended and started again."""
    broker = BrokerProcess(home, flags=flags, lasting=lasting)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.end()


@contextlib.asynccontextmanager
async def proxied_broker(home: Path, broker: BrokerProcess | None = None, *flags: str) -> AsyncIterator[KafkaProxy]:
    """A broker that clients reach only through a proxy, whose address it advertises; `broker`, if given."""
    broker = broker or BrokerProcess(home)
    async with KafkaProxy("127.0.0.1", broker.port) as proxy:
        broker.flags = (*flags, "--advertised", proxy.address)
        await broker.start()
        try:
            yield proxy
        finally:
            await broker.end()
