"""A standalone Spark cluster from PySpark's own jars, on this host or as hosts of their own in a network namespace."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from keelman.runtime.java.installation import find
from keelman.runtime.processes.die_with_parent import tethered
from keelman.spark.masters.class_archive import spark_jars
from keelman.spark.masters.jvm import OPENED
from support.eventually import eventually

START_SECONDS = 300.0
NET = "198.51.100"  # addresses that no real network has (RFC 5737, TEST-NET-2)
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss512k", "-Xmx160m")
SMALL_EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "4",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
}
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass
class Cluster:
    """A master and executors. Without a namespace everything listens on loopback."""

    folder: Path
    port: int
    host: str = "127.0.0.1"
    namespace: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """The URL of the master."""
        return f"spark://{self.host}:{self.port}"

    def properties(self) -> Path:
        """Properties of an application for small executors, as a file."""
        file = self.folder / "spark.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in SMALL_EXECUTORS.items()))
        return file

    async def start(self, *, workers: int, cores: int) -> None:
        """Starts everything and waits until the workers are registered."""
        await self.begin_master()
        for n in range(workers):
            self.work(f"worker-{n}", cores=cores)
        for n in range(workers):
            name = f"worker-{n}"
            await eventually(
                lambda name=name: "Successfully registered" in self.text(name), seconds=START_SECONDS, what=name
            )

    async def begin_master(self) -> None:
        """Starts the master, at the same port each time."""
        listen = ["--host", self.host, "--webui-port", "0"]
        self.java("master", "org.apache.spark.deploy.master.Master", *listen, "--port", str(self.port))
        await eventually(lambda: "I have been elected leader" in self.text("master"), seconds=START_SECONDS)

    def page(self) -> str:
        """The URL of the master's page."""
        found = re.search(r"started at (http://\S+)", self.text("master"))
        assert found is not None, self.text("master")
        return found[1]

    def work(self, name: str, *, cores: int) -> None:
        """Starts a worker, which starts executors."""
        size = ["--cores", str(cores), "--memory", "1100m", "--work-dir", str(self.folder / name)]
        listen = ["--host", self.host, "--webui-port", "0"]
        self.java(name, "org.apache.spark.deploy.worker.Worker", *listen, *size, self.master)

    def java(self, name: str, main: str, *arguments: str, options: Sequence[str] = SMALL, **more: str) -> None:
        """Starts one of Spark's programs; `more` are variables of its environment."""
        jars = spark_jars()
        command = [
            str(find().program),
            *options,
            *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in OPENED),
            "-cp",
            ":".join(map(str, jars)),
            main,
            *arguments,
        ]
        if self.namespace:
            command = ["ip", "netns", "exec", self.namespace, *command]
        stored = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHON", "KEELMAN_"))}
        variables = {
            **stored,
            "SPARK_HOME": str(jars[0].parents[1]),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": self.host,
            **more,
        }
        with self.log(name).open("wb") as log:
            result = subprocess.Popen(
                tethered(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables, cwd=self.folder
            )
        self.processes[name] = result

    async def connect_server(self, port: int, python: str) -> str:
        """Starts a Spark Connect server whose executors are this cluster's; returns its URL."""
        properties = {
            "spark.master": self.master,
            "spark.connect.grpc.binding.address": self.host,
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": self.host,
            "spark.driver.bindAddress": self.host,
            "spark.ui.enabled": "false",
            **SMALL_EXECUTORS,
        }
        options = [*SMALL, "-Xmx560m", *(f"-D{k}={v}" for k, v in properties.items())]
        self.java("connect", CONNECT, options=options, PYSPARK_PYTHON=python)
        await eventually(lambda: "Spark Connect server started" in self.text("connect"), seconds=START_SECONDS)
        return f"sc://{self.host}:{port}"

    def log(self, name: str) -> Path:
        """The output of one program."""
        return self.folder / f"{name}.log"

    def text(self, name: str) -> str:
        """The text of one program's log."""
        return self.log(name).read_text(errors="replace")

    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs."""
        executors = []
        for process in self.processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                executors += [p for p in psutil.Process(process.pid).children() if "Coarse" in " ".join(p.cmdline())]
        return executors

    def end(self, name: str) -> None:
        """Ends one program, if it was started, and its children."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        mine: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(process.pid)
            mine = [top, *top.children(recursive=True)]
        for item in mine:
            with contextlib.suppress(psutil.NoSuchProcess):
                item.send_signal(signal.SIGKILL)
        process.wait(60)

    def stop(self) -> None:
        """Ends all programs."""
        for name in list(self.processes):
            self.end(name)


@dataclass(frozen=True, slots=True)
class Network:
    """A network namespace: its address, and this host's as seen from there."""

    name: str
    here: str
    there: str


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network namespace joined to this host by one cable, with a subnet of its own; needs root."""

    def run(*words: str) -> str:
        return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout

    taken = run("-4", "-o", "addr")
    first = next(n for n in range(4 * (os.getpid() % 32), 252, 4) if f"{NET}.{n + 1}/" not in taken)
    new_network = Network(f"km{os.getpid()}", f"{NET}.{first + 1}", f"{NET}.{first + 2}")
    here, there = f"{new_network.name}a", f"{new_network.name}b"
    run("netns", "add", new_network.name)
    try:
        run("link", "add", here, "type", "veth", "peer", "name", there, "netns", new_network.name)
        run("addr", "add", f"{new_network.here}/30", "dev", here)
        run("link", "set", here, "up")
        run("-n", new_network.name, "addr", "add", f"{new_network.there}/30", "dev", there)
        run("-n", new_network.name, "link", "set", there, "up")
        run("-n", new_network.name, "link", "set", "lo", "up")
        yield new_network
    finally:
        run("netns", "del", new_network.name)


def can_make_networks() -> bool:
    """Whether this user may make network namespaces."""
    return os.geteuid() == 0 and shutil.which("ip") is not None
