"""The settings of a Spark service whose slots run on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterSettings(ProcessSettings):
    """The Spark master that runs the slots, and the addresses and certificates of its executors and this service."""

    master: str = setting(
        "local[256,1]",
        "Spark master: local[n,1] (slots are not cores: it has room for n slots), spark://host:port or sc://host:port.",
    )
    advertised_address: str = setting(
        "",
        "host:port to which slots on other hosts connect: a separate port with TLS, for slots alone. Empty: they "
        "connect to host and port, for a master on this host.",
    )
    advertised_bind_host: str = setting(
        "", "Address that the advertised port listens on; empty means the host of advertised_address."
    )
    tls_certificate: Path | None = setting(None, "Certificate chain of the advertised address, a PEM file.")
    tls_key: Path | None = setting(None, "Private key of the advertised address, a PEM file.")
    tls_ca: Path | None = setting(
        None, "Certificates that slots trust, a PEM file; empty means tls_certificate, which then has signed itself."
    )
    tls_server_name: str = setting(
        "", "Name that slots look for in the certificate; empty means the host of advertised_address."
    )
    driver_host: str = setting(
        "", "Host that executors reach Spark's driver at; empty means that of advertised_address, else 127.0.0.1."
    )
    driver_bind_host: str = setting("", "Address that Spark's driver listens on; empty means driver_host.")
    executor_python: str = setting(
        "",
        "Python that executors of a remote master run; empty means this service's own or, with a pack, pythonX.Y of "
        "its version.",
    )
    pack: Path | None = setting(
        None, "Archive of `keelman spark pack` for executors; empty means that keelman is installed in their Python."
    )
    executor_cores: int = setting(
        2, "Cores of each executor on a standalone cluster: as many slots run in it at a time.", minimum=1
    )
    executor_memory_mb: int = setting(
        512,
        "Heap of each executor's JVM on a standalone cluster; slots are processes beside it.",
        unit="MiB",
        minimum=480,
    )
    native_slot_memory_mb: int = setting(
        128, "Memory that each slot without Java needs beside the heap of its executor.", unit="MiB", minimum=64
    )
    java_slot_memory_mb: int = setting(
        640, "The same for a slot with Java, which a cluster of this host can have.", unit="MiB", minimum=128
    )
    spark_properties: Path | None = setting(
        None, "Further properties for Spark, a file like spark-defaults.conf; they win over keelman's own."
    )
