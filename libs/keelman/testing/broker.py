"""A real managed broker for tests: the same process that an agent starts, on free ports, ended with its block."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from keelman.kafka.probe import ask_broker
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.testing.kafka_proxy import KafkaProxy

START_SECONDS = 240.0  # on a machine with twenty times as much to do as it can, one takes a minute
STOP_SECONDS = 60.0
# Java's quick compiler alone: half the CPU for a start (2.1 s instead of 4.2) and for a test's few thousand requests.
SHORT_LIVED = "--jvm-options=-XX:TieredStopAtLevel=1"


@dataclass(slots=True)
class BrokerProcess:
    """One broker in `home`; started and stopped as often as a test likes, its data kept."""

    home: Path
    port: int = 0
    controller_port: int = 0
    flags: tuple[str, ...] = ()
    lasting: bool = False
    """Runs as it is shipped, with both of Java's compilers, which pays after a minute under load."""
    module: str = "keelman.broker"
    """What is run; `keelman.testing.broker_3_9` is one of Kafka 3.9."""
    _child: asyncio.subprocess.Process | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.port:
            self.port, self.controller_port = free_ports(2)

    @property
    def bootstrap(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the broker service, the parent of the Java process."""
        assert self._child is not None, "not started"
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._child is not None and self._child.returncode is None

    @property
    def output(self) -> str:
        """All that it wrote, over all its starts."""
        file = self.home / "output.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    async def spawn(self) -> None:
        """Starts the process and does not wait for it."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", self.module, "run", "--home", str(self.home)]
        command += ["--port", str(self.port), "--controller-port", str(self.controller_port)]
        command += [f"--start-seconds={START_SECONDS:g}", *([] if self.lasting else [SHORT_LIVED]), *self.flags]
        plain = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_BROKER_")}
        with (self.home / "output.log").open("ab") as output:
            self._child = await asyncio.create_subprocess_exec(
                *tethered(command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=plain
            )

    async def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its output when it does not."""
        await self.spawn()
        assert self._child is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while self._child.returncode is None:
                    answer = await ask_broker("127.0.0.1", self.port)
                    if answer is not None and answer.brokers:
                        return
                    await asyncio.sleep(0.05)
        code = self._child.returncode
        await self.end(signal.SIGKILL)
        raise AssertionError(f"the broker did not start (exit code {code}):\n{self.output[-4000:]}")

    async def ended(self, seconds: float = STOP_SECONDS) -> int:
        """Waits until it ends by itself; its exit code."""
        assert self._child is not None, "not started"
        async with asyncio.timeout(seconds):
            return await self._child.wait()

    async def end(self, number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Sends the signal and waits; its exit code. After the time it is killed. An ended one is left as it is."""
        assert self._child is not None, "not started"
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)
        try:
            return await self.ended(seconds)
        except TimeoutError:
            self._child.kill()
            return await self._child.wait()


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
    """A broker that clients reach through a proxy alone, whose address it advertises; `broker`, where given."""
    broker = broker or BrokerProcess(home)
    async with KafkaProxy("127.0.0.1", broker.port) as proxy:
        broker.flags = (*flags, "--advertised", proxy.address)
        await broker.start()
        try:
            yield proxy
        finally:
            await broker.end()
